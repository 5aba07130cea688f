"""How a broker follows the cluster's metadata, and its requests to the controller."""
