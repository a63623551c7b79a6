"""Symbolic arrays: what a traced NumPy program computes with, written to and viewed as ndarrays."""
