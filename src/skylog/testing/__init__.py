"""skylog in tests: a broker in this process.

It starts in well under a second, on free ports and in a directory of its own::

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
"""

from skylog.testing.broker import Broker

__all__ = ["Broker"]
