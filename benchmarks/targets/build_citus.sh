#!/bin/bash
# build_citus.sh REPOSITORY TAG: build Citus for the installed PostgreSQL, and install it there.
set -euo pipefail

pg_config=$(ls -d /usr/lib/postgresql/*/bin/pg_config | sort -V | tail -1)
missing=()
for package in git make libicu-dev libkrb5-dev liblz4-dev libssl-dev libzstd-dev; do
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if (( ${#missing[@]} )); then
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone --quiet --depth 1 --branch "$2" "$1" "$folder/citus"
cd "$folder/citus"
# PostgreSQL 15.20 has a function of that name itself.
sed -i 's/^have_createdb_privilege(void)/citus_have_createdb_privilege(void)/
  s/^#define have_createdb_privilege() .*/#define have_createdb_privilege() citus_have_createdb_privilege()/' \
  src/include/pg_version_compat.h
{
  PG_CONFIG="$pg_config" ./configure --without-libcurl
  make -j"$(nproc)" install-extension with_llvm=no
} >"$folder/log" 2>&1 || { tail -30 "$folder/log" >&2; exit 1; }
echo "Citus ${2#v} is installed in $("$pg_config" --pkglibdir)"
