#!/bin/sh
# Install what `make interop` needs beyond .venv: Kafka's jars, kcat, kafkajs, a franz-go client, and
# the object-storage servers versitygw (S3) and Azurite (Azure). With the argument librdkafka, build
# librdkafka's own tests, too.
# Everything but system packages goes to ${XDG_CACHE_HOME:-~/.cache}/skylog. Skips what is there.
set -eu

kafkajs=2.2.4
kafkajs_snappy=1.1.0
go_toolchain=1.24.13
versitygw=1.8.0
azurite=3.37.0
rdkafka_sys=4.10.0

here=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/skylog
mkdir -p "$cache"

fail() {
    echo "interop setup: $1" >&2
    exit 1
}

refreshed=
apt_install() {
    command -v apt-get >/dev/null || fail "$1 is missing and there is no apt-get to install it"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "$1 is missing: install it as root"
        as_root=sudo
    fi
    if [ -z "$refreshed" ]; then
        $as_root apt-get update -qq >&2 || true
        refreshed=yes
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >&2 \
        || fail "apt-get install $1 failed"
}

need() { # a command, and the package that has it
    command -v "$1" >/dev/null || apt_install "$2"
    command -v "$1" >/dev/null || fail "$1 is still missing after installing $2"
}

# The Go of older Debians cannot fetch toolchains by itself; the module proxy has them.
modern_go() {
    major_minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    if [ "${major_minor:-0}" -ge 21 ]; then
        command -v go
        return
    fi
    toolchain=$cache/go-$go_toolchain
    if [ ! -x "$toolchain/bin/go" ]; then
        module=golang.org/toolchain@v0.0.1-go$go_toolchain.$(go env GOOS)-$(go env GOARCH)
        scratch=$(mktemp -d)
        (cd "$scratch" && go mod download "$module") >&2 || fail "cannot fetch $module"
        cp -R "$(go env GOMODCACHE)/$module" "$toolchain.new"
        chmod -R u+w "$toolchain.new"
        chmod u+x "$toolchain.new"/bin/* "$toolchain.new"/pkg/tool/*/*
        mv "$toolchain.new" "$toolchain"
        rm -rf "$scratch"
    fi
    echo "$toolchain/bin/go"
}

# The compiler too: some tests compile small Java programs.
need javac default-jdk-headless
need unzip unzip
need kcat kcat
need npm npm
need node nodejs
need go golang

# Postgres's server programs are not on PATH; tests start their own server with them.
has_postgres() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}
has_postgres || apt_install postgresql
has_postgres || fail "initdb is still missing after installing postgresql"

# SKYLOG_KAFKA_JARS may name a directory of jars; without it maven fetches them.
if [ -z "${SKYLOG_KAFKA_JARS:-}" ]; then
    need mvn maven
    "$here/tools/kafka_jars.sh" >/dev/null || fail "cannot fetch Kafka's jars"
fi

node=$cache/kafkajs-$kafkajs
if [ ! -f "$node/.complete" ]; then
    mkdir -p "$node"
    npm install --prefix "$node" --no-audit --no-fund --loglevel=error --ignore-scripts \
        "kafkajs@$kafkajs" "kafkajs-snappy@$kafkajs_snappy" >&2 || fail "cannot fetch kafkajs"
    touch "$node/.complete"
fi

program=$cache/franz-go-client
sources=$(cat "$here"/tests/interop/go/* | cksum)
if [ "$(cat "$program.sum" 2>/dev/null)" != "$sources" ]; then
    go=$(modern_go)
    (cd "$here/tests/interop/go" && "$go" build -o "$program" .) >&2 \
        || fail "cannot build the franz-go client"
    echo "$sources" >"$program.sum"
fi

gateway=$cache/versitygw
if [ "$(cat "$gateway.version" 2>/dev/null)" != "$versitygw" ]; then
    go=$(modern_go)
    GOBIN=$cache "$go" install "github.com/versity/versitygw/cmd/versitygw@v$versitygw" >&2 \
        || fail "cannot build versitygw"
    echo "$versitygw" >"$gateway.version"
fi

emulator=$cache/azurite
if [ "$(cat "$emulator/.complete" 2>/dev/null)" != "$azurite" ]; then
    mkdir -p "$emulator"
    npm install --prefix "$emulator" --no-audit --no-fund --loglevel=error --ignore-scripts \
        "azurite@$azurite" >&2 || fail "cannot fetch azurite"
    echo "$azurite" >"$emulator/.complete"
fi

# The crate has all of librdkafka's sources, tests included. The tests expect a Kafka release as a
# folder with jars in libs/ and commands in bin/.
librdkafka_tests() {
    need cargo cargo
    need make make
    need g++ g++
    # Without RapidJSON, tests of statistics and of reading transactions are skipped.
    has_header rapidjson/schema.h || apt_install rapidjson-dev
    has_header zstd.h || apt_install libzstd-dev
    has_header openssl/ssl.h || apt_install libssl-dev
    has_header zlib.h || apt_install zlib1g-dev
    scratch=$(mktemp -d)
    mkdir "$scratch/src"
    touch "$scratch/src/lib.rs"
    cat >"$scratch/Cargo.toml" <<MANIFEST
[package]
name = "librdkafka-tests"
version = "0.0.0"
edition = "2021"
[dependencies]
rdkafka-sys = "=$rdkafka_sys"
MANIFEST
    (cd "$scratch" && cargo vendor --quiet) >/dev/null || fail "cannot fetch rdkafka-sys"
    rm -rf "$suite"
    cp -R "$scratch/vendor/rdkafka-sys/librdkafka" "$suite"
    rm -rf "$scratch"

    jars=$("$here/tools/kafka_jars.sh")/lib
    mkdir -p "$suite/kafka/bin"
    ln -s "$jars" "$suite/kafka/libs"
    kafka_command kafka-run-class.sh ""
    kafka_command kafka-topics.sh org.apache.kafka.tools.TopicCommand
    kafka_command kafka-acls.sh org.apache.kafka.tools.AclCommand
    (
        cd "$suite"
        bash ./configure --disable-gssapi --disable-curl
        make -j2 libs
        make -j2 -C tests build
        make -C tests java KAFKA_PATH="$suite/kafka"
    ) >"$suite/build.log" 2>&1 || fail "cannot build librdkafka's tests: see $suite/build.log"
    touch "$suite/.complete"
}

has_header() {
    echo "#include <$1>" | g++ -E -x c++ - >/dev/null 2>&1
}

kafka_command() { # the command's name, and its class
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp "$CLASSPATH:%s/*" %s "$@"\n' \
        "$jars" "$2" >"$suite/kafka/bin/$1"
    chmod +x "$suite/kafka/bin/$1"
}

suite=$cache/librdkafka-tests-$rdkafka_sys
if [ "${1:-}" = librdkafka ] && [ ! -f "$suite/.complete" ]; then
    librdkafka_tests
fi
echo "interop: ready" >&2
