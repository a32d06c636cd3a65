#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up everything that a build needs, then builds. Does nothing twice: each step leaves a
# stamp in .deps/ that names what it was made from.
#
#   scripts/setup.sh             Debian packages, .venv, headers, the release build
#   scripts/setup.sh --no-build  the same without configuring or building
#   scripts/setup.sh --core PRESET FOLDER   only what the core needs: no framework, no .venv;
#                                and the build of that preset with its tests
#   scripts/setup.sh --all       the release build with its tests
#
# HASTEN_SETUP_PYTHON names the Python that .venv is made from (3.11 or later).
set -euo pipefail
export LC_ALL=C.UTF-8
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
root=$PWD
source scripts/ccache.sh
started=${EPOCHREALTIME//[!0-9]/}

say() {
  local tenths=$(((${EPOCHREALTIME//[!0-9]/} - started) / 100000))
  printf '[setup] %5d.%d s  %s\n' $((tenths / 10)) $((tenths % 10)) "$*" >&2
}
fail() { say "error: $1"; shift; local line; for line in "$@"; do say "  $line"; done; exit 1; }

# fresh STEP KEY: whether STEP was finished with this KEY. finish STEP KEY: says that it was.
fresh() { [[ -f .deps/stamps/$1 && $(< ".deps/stamps/$1") == "$2" ]]; }
finish() { printf '%s\n' "$2" > ".deps/stamps/$1"; }
hash_of() { cat -- "$@" | sha256sum | cut -d' ' -f1; }
pin_of() { grep -iE "^$1==" requirements.txt; }

# Sets `python`, `python_key` (what .venv depends on) and `python_lacks` (Debian packages).
choose_python() {
  python=${HASTEN_SETUP_PYTHON:-python3}
  local answer
  answer=$("$python" - 2> /dev/null <<< 'if True:
    import importlib.util, os, sys, sysconfig
    if sys.version_info < (3, 11):
        sys.exit(1)
    print(sys.base_prefix, *sys.version_info[:3])
    # Only Debian leaves these out of Python.
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    print("" if importlib.util.find_spec("ensurepip") else "python3-venv",
          "" if os.path.exists(header) else "python3-dev")') ||
    fail "$python is not a Python 3.11 or later" "set HASTEN_SETUP_PYTHON to one that is"
  python_key=${answer%%$'\n'*}
  python_lacks=${answer#*$'\n'}
}

# The packages that are missing, one a line.
missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//' scripts/debian-packages.txt | xargs -n1 | sort -u - \
    <(xargs -n1 <<< "$python_lacks"))
  # An exit status other than 0 only says that a package is unknown.
  # shellcheck disable=SC2086 # one word a package
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2> /dev/null |
    sed -n 's/^ii *//p' | sort -u) || true
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed") | sed '/^$/d'
}

install_packages() {
  command -v dpkg-query > /dev/null || fail "this is no Debian: dpkg-query is missing"
  local missing as_root=()
  missing=$(missing_packages | xargs)
  [[ -n $missing ]] || return 0
  if ((EUID != 0)); then
    sudo -n true 2> /dev/null || fail "these Debian packages are missing, and I am not root:" \
      "$missing" "install them with:" "sudo apt-get install $missing"
    as_root=(sudo -n)
  fi
  say "installing Debian packages: $missing"
  # A foreign source that does not answer is not our business: the install decides.
  "${as_root[@]}" apt-get -q update > .deps/logs/apt.log 2>&1 ||
    say "apt-get update failed for some sources; going on"
  # shellcheck disable=SC2086
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qy install \
    --no-install-recommends $missing >> .deps/logs/apt.log 2>&1 ||
    { tail -n 15 .deps/logs/apt.log >&2; fail "apt-get could not install: $missing" \
      "the whole log: .deps/logs/apt.log"; }
}

# Turns pip's output into a line for every 15th package.
pip_progress() {
  local line count=0
  while IFS= read -r line; do
    case $line in
      Collecting* | Processing* | *already\ satisfied*)
        ((++count % 15)) || say "  $count packages found" ;;
      Installing\ collected*) say "  unpacking $count packages" ;;
    esac
  done
}

pip_install() {
  .venv/bin/python -m pip install --no-deps --disable-pip-version-check --progress-bar off \
    --no-input "$@" 2>> .deps/logs/pip.err | tee -a .deps/logs/pip.log | pip_progress ||
    { tail -n 15 .deps/logs/pip.err >&2
      fail "pip could not install $*" "the whole log: .deps/logs/pip.log and pip.err"; }
}

make_venv() {
  local key
  key="$(hash_of requirements.txt) $python_key"
  if fresh venv "$key" && [[ -x .venv/bin/python ]]; then return; fi
  : > .deps/logs/pip.log
  : > .deps/logs/pip.err
  if ! fresh venv-python "$python_key" || ! .venv/bin/python -c '' 2> /dev/null; then
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
    finish venv-python "$python_key"
  fi
  # First and alone: beside packages that ask for "torch" pip may take another build of it.
  say "installing $(pin_of torch)"
  pip_install "$(pin_of torch)"
  say "installing the other $(($(grep -c == requirements.txt) - 1)) packages"
  pip_install -r requirements.txt
  finish venv "$key"
}

dlpack_from_wheel() {
  local from=.deps/tvm-ffi pip=("$python" -m pip)
  rm -rf "$from"
  mkdir -p "$from"
  "${pip[@]}" --version > /dev/null 2>&1 || {
    "$python" -m venv .deps/pip-venv
    pip=(.deps/pip-venv/bin/python -m pip)
  }
  "${pip[@]}" download -q --no-deps --disable-pip-version-check -d "$from" "$1" \
    2> .deps/logs/dlpack.log || { cat .deps/logs/dlpack.log >&2; fail "pip could not download $1"; }
  "$python" -m zipfile -e "$from"/*.whl "$from"
  cp "$from"/tvm_ffi/include/dlpack/*.h .deps/dlpack/include/dlpack/
  rm -rf "$from" .deps/pip-venv
}

dlpack_header() {
  local pin key
  pin=$(pin_of apache-tvm-ffi)
  key=$pin
  if fresh dlpack "$key" && [[ -f .deps/dlpack/include/dlpack/dlpack.h ]]; then return; fi
  say "taking the DLPack header out of $pin"
  rm -rf .deps/dlpack
  mkdir -p .deps/dlpack/include/dlpack
  # The whole environment has it unpacked; the core alone fetches the one wheel.
  cp .venv/lib/python3*/site-packages/tvm_ffi/include/dlpack/*.h .deps/dlpack/include/dlpack/ \
    2> /dev/null || dlpack_from_wheel "$pin"
  finish dlpack "$key"
}

onnxruntime_headers() {
  local key
  key=$(hash_of scripts/fetch_onnxruntime_headers.sh)
  if fresh onnxruntime "$key" && [[ -e .deps/onnxruntime/include/onnxruntime_c_api.h ]]; then
    return
  fi
  say "fetching the ONNX Runtime headers"
  scripts/fetch_onnxruntime_headers.sh .deps/onnxruntime > .deps/logs/onnxruntime.log 2>&1 || {
    tail -n 15 .deps/logs/onnxruntime.log >&2
    fail "the ONNX Runtime headers could not be fetched" \
      "put onnxruntime_c_api.h (1.21 or later) into .deps/onnxruntime/include and run this again"
  }
  finish onnxruntime "$key"
}

# CMake refuses a build folder that was moved; so the stamp names where it was made.
configure() {
  local preset=$1 folder=$2 key
  key="$(hash_of CMakePresets.json) $(cat .deps/stamps/{dlpack,venv} 2> /dev/null) $root"
  if fresh "configure-$preset" "$key" && [[ -f $folder/build.ninja ]]; then return; fi
  say "configuring the $preset build"
  cmake --preset "$preset" --fresh > ".deps/logs/configure-$preset.log" 2>&1 || {
    tail -n 25 ".deps/logs/configure-$preset.log" >&2
    fail "CMake could not configure the $preset build"
  }
  finish "configure-$preset" "$key"
}

# build FOLDER TARGET: a line for every tenth step, and all that is no step: warnings and errors.
build_progress() {
  local line done_so_far
  while IFS= read -r line; do
    case $line in
      '[build] '*)
        done_so_far=${line#* }
        [[ ${done_so_far%%/*} != *0 || $done_so_far == 0/* ]] || say "  $done_so_far" ;;
      'ninja: Entering directory'* | 'ninja: no work to do.' | '-- '*) ;;
      *) printf '%s\n' "$line" >&2 ;;
    esac
  done
}

build() {
  NINJA_STATUS='[build] %f/%t ' ninja ${JOBS:+-j "$JOBS"} -C "$1" "$2" 2>&1 | build_progress || fail "the build failed"
}

# .venv imports the package from here: python/ and what the release build compiled. `pip install .`
# would compile all of it a second time, and leave a copy that no later edit reaches.
importable() {
  local packages
  packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$root/python" "$root/build/python" > "$packages/hasten-source.pth"
}

main() {
  local mode=${1:-build}
  mkdir -p .deps/stamps .deps/logs
  # Two at once would tread on each other's files.
  exec 9> .deps/lock
  flock -n 9 || { say "waiting for another set-up of this folder"; flock 9; }
  choose_python
  install_packages
  if [[ $mode != --core ]]; then make_venv; fi
  dlpack_header
  [[ $mode == --core ]] || onnxruntime_headers
  case $mode in
    --no-build) ;;
    --core) configure "$2" "$3"; build "$3" all ;;
    --all) configure release build; build build all; importable ;;
    build) configure release build; build build product; importable ;;
    *) fail "unknown option $mode" "see the top of scripts/setup.sh" ;;
  esac
  say "ready"
}
main "$@"
