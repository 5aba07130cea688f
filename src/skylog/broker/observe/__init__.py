"""What operators see: /metrics, /health, the audit log, traffic counted per topic."""
