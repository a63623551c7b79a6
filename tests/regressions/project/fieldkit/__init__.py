"""Spectra, images, records and fits of field measurements."""

from fieldkit import fitting, images, records, spectra

__all__ = ["fitting", "images", "records", "spectra"]
