# SPDX-License-Identifier: Apache-2.0
# To be sourced in the repository's root, before a build: paths that ccache keeps become relative.
# So another clone on this machine finds what this one compiled, and ninja, which splits the
# compiler's list of headers at a ', never sees the path of the repository in it.
# ccache expands variables in its settings, so a $ of the path has to be one.
export HASTEN_DOLLAR='$'
export CCACHE_BASEDIR=${PWD//\$/\$\{HASTEN_DOLLAR\}}
