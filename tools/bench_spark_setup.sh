#!/bin/sh
# Install what `python -m bench --only spark` compares with: pyspark 4.0.0 in a separate
# environment, and Spark's Kafka source of the same version with the libraries that it needs.
# Everything goes to ${XDG_CACHE_HOME:-~/.cache}/skylog/spark-VERSION. Prints that directory. Skips
# what is already there.
set -eu

version=4.0.0
python=${PYTHON:-python3}
base=${XDG_CACHE_HOME:-$HOME/.cache}/skylog/spark-$version
if [ "$(cat "$base/.complete" 2>/dev/null)" = "$version" ]; then
    echo "$base"
    exit 0
fi

fail() {
    echo "bench setup: $1" >&2
    exit 1
}

command -v java >/dev/null || fail "java is missing (17 or newer)"
command -v mvn >/dev/null || fail "mvn is missing"
mkdir -p "$base"
[ -x "$base/venv/bin/python" ] || "$python" -m venv "$base/venv" || fail "cannot make an environment"
"$base/venv/bin/python" -m pip install -q "pyspark==$version" >&2 || fail "cannot install pyspark"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>skylog</groupId>
  <artifactId>spark-kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>spark-sql-kafka-0-10_2.13</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
# pyspark has its other dependencies.
wanted=spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies "-DincludeArtifactIds=$wanted" \
    "-DoutputDirectory=$base/lib" >&2 || fail "cannot fetch Spark's Kafka source"
echo "$version" >"$base/.complete"
echo "$base"
