"""The Dask target."""
