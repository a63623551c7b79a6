"""The one device there is."""

from __future__ import annotations

from typing import Any

from graphir import GraphError

Device = str
CPU: Device = "cpu"


def device_of(device: Any) -> Device:
    """The device that is asked for, None meaning any; ValueError for one that is not there."""
    if device is not None and device != CPU:
        raise GraphError(f"unknown device {device!r}", fix=f"use {CPU!r}")
    return CPU
