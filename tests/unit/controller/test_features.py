from __future__ import annotations

import pytest

from skylog.controller.features import UpgradeType
from skylog.controller.image.configs import ConfigResourceType
from skylog.controller.requests import Loaded
from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.abort_transaction_record import AbortTransactionRecord
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from skylog.wire.messages.begin_transaction_record import BeginTransactionRecord
from skylog.wire.messages.create_topics_request import CreateTopicsRequest
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.messages.no_op_record import NoOpRecord
from skylog.wire.messages.producer_ids_record import ProducerIdsRecord
from skylog.wire.messages.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from skylog.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.controller.support import LEVELS, Bench, registration, topic

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
ELR = "eligible.leader.replicas.version"
NO_ELR = {**LEVELS, ELR: 0}


def update(name: str, level: int, upgrade: int = UP) -> FeatureUpdateKey:
    return FeatureUpdateKey(name, level, upgrade_type=upgrade)


def test_an_empty_log_is_given_the_first_records_in_one_transaction() -> None:
    bench = Bench()
    names = [type(record).__name__ for record in bench.log]
    assert names[0] == "BeginTransactionRecord"
    assert names[-1] == "EndTransactionRecord"
    assert bench.image.finalized_features() == LEVELS
    assert bench.image.config_overrides(ConfigResourceType.BROKER, "") == {
        "min.insync.replicas": "1"
    }
    before = len(bench.log)
    bench.run(Loaded())
    assert len(bench.log) == before


def test_without_eligible_leaders_no_minimum_is_written() -> None:
    bench = Bench(levels=NO_ELR)
    assert bench.image.config_overrides(ConfigResourceType.BROKER, "") == {}


def test_a_transaction_that_was_cut_off_is_aborted_first() -> None:
    bench = Bench(brokers=1)
    for record in (BeginTransactionRecord("cut off"), FeatureLevelRecord("group.version", 0)):
        bench.machine.apply(record, len(bench.log))
        bench.log.append(record)
    assert bench.image.finalized_features()["group.version"] == 1
    bench.run(Loaded())
    assert isinstance(bench.log[-1], AbortTransactionRecord)
    assert not bench.image.in_transaction
    assert bench.image.finalized_features()["group.version"] == 1
    bench.create(topic("t"))
    assert bench.image.topic("t") is not None


@pytest.mark.parametrize(
    ("wanted", "accepted"),
    [
        (update("group.version", 0, SAFE), True),
        (update("group.version", 0, UNSAFE), True),
        (update("group.version", 0, UP), False),
        (update("group.version", 1, UP), True),
        (update("group.version", 2, UP), False),
        (update("group.version", -1, UP), False),
        (update("group.version", 1, 0), False),
        (update("group.version", 1, 9), False),
        (update("share.version", 1, UP), True),
        (update("share.version", 1, SAFE), False),
        (update("no.such.feature", 1, UP), False),
        (update("metadata.version", 30, UP), True),
        (update("metadata.version", 31, UP), False),
        (update("metadata.version", 29, SAFE), False),
        (update("metadata.version", 29, UNSAFE), False),
        (update("metadata.version", 6, UNSAFE), False),
        (update("kraft.version", 1, UP), True),
        (update("kraft.version", 0, SAFE), False),
        (update("kraft.version", 2, UP), False),
    ],
)
def test_levels_move_within_what_all_support(wanted: FeatureUpdateKey, accepted: bool) -> None:
    bench = Bench(brokers=1)
    before = len(bench.log)
    response = bench.ask(UpdateFeaturesRequest(feature_updates=[wanted]))
    assert response.error_code == (0 if accepted else ErrorCode.INVALID_UPDATE_VERSION)
    assert (response.error_message is None) == accepted
    assert (len(bench.log) > before) == accepted
    assert response.results == []


def test_metadata_goes_back_only_where_nothing_changed() -> None:
    bench = Bench(levels={"metadata.version": 29})
    back = UpdateFeaturesRequest(feature_updates=[update("metadata.version", 24, SAFE)])
    assert bench.ask(back).error_code == 0
    assert bench.image.features.metadata_version == 24
    further = UpdateFeaturesRequest(feature_updates=[update("metadata.version", 22, SAFE)])
    assert bench.ask(further).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_level_may_depend_on_the_metadata_version() -> None:
    bench = Bench(levels={"metadata.version": 22})
    wanted = UpdateFeaturesRequest(feature_updates=[update(ELR, 1)])
    assert bench.ask(wanted).error_code == ErrorCode.INVALID_UPDATE_VERSION
    both = [update("metadata.version", 23), update(ELR, 1)]
    assert bench.ask(UpdateFeaturesRequest(feature_updates=both)).error_code == 0


def test_a_broker_that_does_not_support_a_level_holds_it_back() -> None:
    bench = Bench()
    request = registration(1)
    request.features = [one for one in request.features if one.name != "share.version"]
    bench.ask(request)
    wanted = UpdateFeaturesRequest(feature_updates=[update("share.version", 1)])
    assert bench.ask(wanted).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_other_controllers_are_asked_too() -> None:
    bench = Bench()
    bench.machine.apply(RegisterControllerRecord(controller_id=2), len(bench.log))
    wanted = UpdateFeaturesRequest(feature_updates=[update("share.version", 1)])
    assert bench.ask(wanted).error_code == ErrorCode.INVALID_UPDATE_VERSION
    features = [ControllerFeature(name, *span) for name, span in SUPPORTED_FEATURES.items()]
    bench.machine.apply(RegisterControllerRecord(controller_id=2, features=features), 0)
    assert bench.ask(wanted).error_code == 0


def test_one_bad_update_stops_them_all() -> None:
    bench = Bench()
    before = len(bench.log)
    updates = [update("share.version", 1), update("group.version", 9)]
    response = bench.ask(UpdateFeaturesRequest(feature_updates=updates))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert len(bench.log) == before


def test_old_versions_answer_per_feature_and_know_one_kind_of_downgrade() -> None:
    bench = Bench()
    down = FeatureUpdateKey("group.version", 0, allow_downgrade=True)
    response = bench.ask(UpdateFeaturesRequest(feature_updates=[down]), 0)
    assert [(one.feature, one.error_code) for one in response.results] == [("group.version", 0)]
    again = FeatureUpdateKey("transaction.version", 0)
    response = bench.ask(UpdateFeaturesRequest(feature_updates=[again]), 0)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_checking_an_update_changes_nothing() -> None:
    bench = Bench()
    before = len(bench.log)
    wanted = UpdateFeaturesRequest(feature_updates=[update("share.version", 1)], validate_only=True)
    assert bench.ask(wanted).error_code == 0
    assert len(bench.log) == before


def test_eligible_leaders_bring_one_minimum_for_the_cluster() -> None:
    bench = Bench(brokers=1, levels=NO_ELR)
    bench.ask(UpdateFeaturesRequest(feature_updates=[update(ELR, 1)]))
    assert bench.image.features.elr_enabled
    assert bench.image.config_overrides(ConfigResourceType.BROKER, "") == {
        "min.insync.replicas": "1"
    }


def test_the_quorums_own_version_is_never_a_record() -> None:
    bench = Bench()
    bench.ask(UpdateFeaturesRequest(feature_updates=[update("kraft.version", 1)]))
    assert bench.log[-1] == NoOpRecord()
    bench.machine.apply(FeatureLevelRecord("kraft.version", 1), len(bench.log))
    assert "kraft.version" not in bench.image.finalized_features()


def test_producer_ids_are_handed_out_in_blocks() -> None:
    bench = Bench(brokers=1)
    request = AllocateProducerIdsRequest(1, bench.epochs[1])
    blocks = [bench.ask(request) for _ in range(3)]
    assert [(one.producer_id_start, one.producer_id_len) for one in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    stale = AllocateProducerIdsRequest(1, bench.epochs[1] + 1)
    assert bench.refused(stale).code is ErrorCode.STALE_BROKER_EPOCH


def test_producer_ids_end_where_a_long_ends() -> None:
    bench = Bench(brokers=1)
    request = AllocateProducerIdsRequest(1, bench.epochs[1])
    bench.machine.apply(ProducerIdsRecord(1, 0, 2**63 - 1001), 0)
    assert bench.ask(request).producer_id_start == 2**63 - 1001
    assert bench.refused(request).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_message_that_is_not_the_controllers_is_refused() -> None:
    bench = Bench()
    assert bench.refused(NoOpRecord(), 0).code is ErrorCode.UNSUPPORTED_VERSION
    assert bench.ask(CreateTopicsRequest()).topics == []
