"""Feature levels: what brokers must support to register, and how levels change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from skylog.controller.image.configs import (
    CLUSTER_DEFAULT,
    ConfigResourceType,
)
from skylog.controller.image.features import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import MIN_ISR, ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.messages.no_op_record import NoOpRecord
from skylog.wire.messages.update_features_request import UpdateFeaturesRequest
from skylog.wire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from skylog.wire.schema import Message

# Metadata versions with new or changed records: no downgrade across them.
_METADATA_CHANGES: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
# The metadata version that a feature level requires.
_DEPENDENCIES: Final = {(ELR_VERSION, 1): 23}
_METADATA_VERSION_MIN: Final = 7
_DISABLED: Final = (0, 0)


class UpgradeType(IntEnum):
    """The direction in which a level may change."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, number: int) -> UpgradeType:
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class _Update:
    feature: str
    level: int
    upgrade: UpgradeType


def check_broker_features(state: ControllerState, message: BrokerRegistrationRequest) -> None:
    """A broker must support every finalized level; features it does not name only at level 0."""
    ranges = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in message.features
    }
    finalized = {**state.image.features.levels, KRAFT_VERSION: state.settings.kraft_version}
    for name in {**ranges, **finalized}:
        low, high = ranges.get(name, _DISABLED)
        level = finalized.get(name, 0)
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The broker supports versions {low} to {high} of {name}, but the cluster's is "
                f"{level}.",
            )
    if METADATA_VERSION not in ranges:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION, f"The broker's features lack '{METADATA_VERSION}'."
        )


def update_features(
    state: ControllerState, request: ControllerRequest, message: UpdateFeaturesRequest
) -> Result[UpdateFeaturesResponse]:
    """All updates or none."""
    updates = {
        update.feature: _Update(
            update.feature,
            update.max_version_level,
            _upgrade_type(request.version, update.upgrade_type, update.allow_downgrade),
        )
        for update in message.feature_updates
    }
    proposed = {**state.image.features.levels}
    proposed.update({name: update.level for name, update in updates.items()})
    records: list[Message] = []
    try:
        for update in updates.values():
            records += _update_feature(state, update, proposed)
    except KafkaError as error:
        why = f"The update failed for all features since one had an error: {error.message}"
        return Result(UpdateFeaturesResponse(error_code=error.code, error_message=why))
    if message.validate_only:
        records = []
    elif proposed.get(ELR_VERSION, 0) > 0 and ELR_VERSION in updates:
        records = [*_elr_safety_records(state), *records]
    response = UpdateFeaturesResponse(error_message=None)
    if request.version <= 1:
        response.results = [
            UpdatableFeatureResult(update.feature, 0, "NONE") for update in message.feature_updates
        ]
    return Result(response, records)


def _upgrade_type(version: int, number: int, allow_downgrade: bool) -> UpgradeType:
    if version == 0:
        return UpgradeType.SAFE_DOWNGRADE if allow_downgrade else UpgradeType.UPGRADE
    return UpgradeType.of(number)


def _update_feature(
    state: ControllerState, update: _Update, proposed: Mapping[str, int]
) -> list[Message]:
    current = state.image.features.levels.get(update.feature, 0)
    if update.feature == KRAFT_VERSION:
        current = state.settings.kraft_version
    _check_level(state, update, current)
    if update.feature == KRAFT_VERSION:
        return _update_kraft_version(update, current)
    if update.feature == METADATA_VERSION:
        _check_metadata_version(update, current)
    else:
        _check_dependencies(update, proposed)
    return [FeatureLevelRecord(update.feature, update.level)]


def _check_level(state: ControllerState, update: _Update, current: int) -> None:
    if update.upgrade is UpgradeType.UNKNOWN:
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    why = _reason_unsupported(state, update)
    if why is not None:
        raise _invalid(update, why)
    if update.level < current and update.upgrade is UpgradeType.UPGRADE:
        raise _invalid(update, "To go back, the upgrade type must be a safe or unsafe downgrade.")
    if update.level > current and update.upgrade is not UpgradeType.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")


def _reason_unsupported(state: ControllerState, update: _Update) -> str | None:
    settings = state.settings
    controllers = state.image.brokers.controllers
    nodes = [
        (f"Local controller {settings.node_id}", settings.supported_features),
        *((f"Broker {one.broker_id}", one.features) for one in state.image.brokers.by_id.values()),
        *(
            (f"Controller {one.controller_id}", one.features)
            for one in controllers.values()
            if one.controller_id != settings.node_id
        ),
    ]
    for what, supported in nodes:
        low, high = supported.get(update.feature, _DISABLED)
        if not low <= update.level <= high:
            if (low, high) == _DISABLED:
                return f"{what} does not support this feature."
            return f"{what} only supports versions {low}-{high}"
    for node_id in settings.quorum_node_ids:
        if node_id != settings.node_id and node_id not in controllers:
            return f"Controller {node_id} has not registered, and may not support this feature"
    return None


def _update_kraft_version(update: _Update, current: int) -> list[Message]:
    if update.level == current:
        # One record, so that the response has an offset to wait for.
        return [NoOpRecord()] if update.upgrade is UpgradeType.UPGRADE else []
    if update.level < current:
        raise _invalid(update, "Can't downgrade the version of this feature.")
    raise _invalid(update, "The quorum's version is set when its directories are formatted.")


def _check_metadata_version(update: _Update, current: int) -> None:
    crossed = range(update.level + 1, current + 1)
    if any(level in _METADATA_CHANGES for level in crossed):
        unsafe = update.upgrade is UpgradeType.UNSAFE_DOWNGRADE
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {update.level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if unsafe
                else "It might delete metadata information."
            ),
        )


def _check_dependencies(update: _Update, proposed: Mapping[str, int]) -> None:
    needed = _METADATA_VERSION_MIN if update.level >= 1 else 0
    needed = max(needed, _DEPENDENCIES.get((update.feature, update.level), 0))
    if proposed.get(METADATA_VERSION, 0) < needed:
        raise _invalid(
            update,
            f"{update.feature} could not be set to {update.level} because it depends on "
            f"{METADATA_VERSION} level {needed}",
        )


def _invalid(update: _Update, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.feature}. {why}",
    )


def _elr_safety_records(state: ControllerState) -> list[Message]:
    """Eligible leader replicas need one minimum ISR for all brokers: the cluster's."""
    configs = state.image.configs
    records: list[Message] = []
    if MIN_ISR not in configs.of(CLUSTER_DEFAULT):
        records.append(ConfigRecord(*CLUSTER_DEFAULT, MIN_ISR, state.static_values[MIN_ISR]))
    for resource, values in configs.by_resource.items():
        named_broker = resource.type == ConfigResourceType.BROKER and resource.name
        if named_broker and MIN_ISR in values:
            records.append(ConfigRecord(*resource, MIN_ISR, None))
    return records
