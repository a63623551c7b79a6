"""The devices of the namespace: "cpu" is the only one."""

from __future__ import annotations

from typing import Any

from graphir import GraphError

Device = str
CPU: Device = "cpu"


def device_of(device: Any) -> Device:
    """Return the device of an argument; None means the CPU. Raise ValueError for another one."""
    if device is not None and device != CPU:
        raise GraphError(f"unknown device {device!r}", fix=f"use {CPU!r}")
    return CPU
