"""skylog in tests: a broker in this process.

with Broker() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
"""

from skylog.testing.broker import Broker

__all__ = ["Broker"]
