"""One module per family of APIs."""
