#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fetch_onnxruntime_headers.sh DIR: the headers of ONNX Runtime's C API into DIR/include.
#
# The wheel has the library without headers, and Debian 12 has no package; Debian 13 has one.
# The C API is versioned: older headers ask a newer library for the API that they know. apt reads
# the package with a configuration of its own, so nothing of Debian 13 can be installed, and root
# is not needed. Debian's keyring vouches for it.
set -euo pipefail
suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
target=$1

[[ -r $keyring ]] || { echo "$keyring is missing: install debian-archive-keyring" >&2; exit 1; }
# The mirror that this machine already uses for its own release.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk -v release="$release" '$1 == release && $2 == "main" {print $3; exit}')
[[ -n $mirror ]] || { echo "apt has no source for Debian '$release'" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,etc,tree}
echo "deb [signed-by=$keyring] $mirror $suite main" > "$work/etc/sources.list"
options=(
  -o "Dir::Etc::sourcelist=$work/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
  -o APT::Sandbox::User=root -o Acquire::Languages=none
)
apt-get -q "${options[@]}" update
(cd "$work" && apt-get -q "${options[@]}" download libonnxruntime-dev)
dpkg-deb -x "$work"/libonnxruntime-dev_*.deb "$work/tree"

rm -rf -- "$target"
mkdir -p -- "$target/include"
cp -- "$work"/tree/usr/include/onnxruntime/*.h "$target/include/"
# Both <onnxruntime_c_api.h> and <onnxruntime/onnxruntime_c_api.h> are in use.
ln -s . "$target/include/onnxruntime"
