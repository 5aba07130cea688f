"""The bulk pipeline: jobs that run on Spark, on this machine or on a cluster."""
