"""What every control plane decides alike, the coordinator included. Pure, and below all of them."""
