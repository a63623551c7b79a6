"""Vibration monitoring: from raw accelerometer frames to one health score per machine."""
