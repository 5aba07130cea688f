#!/bin/sh
# Fetch the jars of Kafka 4.3.1, with those of Streams and Connect and of its tiered storage's test
# implementation, by their Maven coordinates, and unpack the message schemas in them.
# Prints the directory that holds lib/ (the jars), test-lib/ (the test implementation, apart so that
# Kafka's tools do not load it) and json/ (the schemas). Skips what is there.
# SKYLOG_KAFKA_JARS names another lib directory than the cache's.
set -eu

version=4.3.1
if [ -n "${SKYLOG_KAFKA_JARS:-}" ]; then
    lib=${SKYLOG_KAFKA_JARS%/}
else
    lib=${XDG_CACHE_HOME:-$HOME/.cache}/skylog/kafka-$version/lib
fi
base=$(dirname "$lib")
# An older cache without the latest of these jars is completed.
if [ "$(cat "$base/.complete" 2>/dev/null)" = "$version" ] \
    && [ -f "$base/test-lib/kafka-storage-$version-test.jar" ]; then
    echo "$base"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>skylog</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-streams-examples</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>connect-file</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>connect-mirror</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-storage</artifactId>
      <version>$version</version>
      <classifier>test</classifier>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-clients</artifactId>
      <version>$version</version>
      <classifier>test</classifier>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.24.3</version>
    </dependency>
  </dependencies>
</project>
POM
mkdir -p "$lib"
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$lib" >&2
mkdir -p "$base/test-lib"
mv "$lib"/kafka-*-"$version"-test.jar "$base/test-lib"

for part in clients metadata group-coordinator transaction-coordinator raft; do
    target=$base/json/kafka-$part-$version
    rm -rf "$target"
    mkdir -p "$target"
    unzip -q -o "$lib/kafka-$part-$version.jar" 'common/*.json' -d "$target" >&2
done
target=$base/json/kafka-storage-$version
rm -rf "$target"
mkdir -p "$target"
unzip -q -o "$lib/kafka-storage-$version.jar" 'message/Remote*.json' -d "$target" >&2
echo "$version" >"$base/.complete"
echo "$base"
