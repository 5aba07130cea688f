"""A node's settings: Kafka's names, types, defaults and rules."""

from skylog.kernel.settings.broker import BrokerSettings, build_settings, load_settings
from skylog.kernel.settings.listeners import ListenerSettings

__all__ = ["BrokerSettings", "ListenerSettings", "build_settings", "load_settings"]
