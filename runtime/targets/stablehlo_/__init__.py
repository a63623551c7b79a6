"""The StableHLO target."""
