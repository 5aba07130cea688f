"""How a broker follows the cluster's metadata, and what it asks of the controller."""
