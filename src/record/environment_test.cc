// SPDX-License-Identifier: Apache-2.0
#include "record/environment.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hasten {
namespace {

TEST_CASE("Environment: an x86 processor is described by its name and its vector extensions") {
  const CpuInfo info = parse_cpuinfo(
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) @ 2.10GHz\n"
      "flags\t\t: fpu vme sse2 avx512f avx2 hypervisor fma md_clear\nbugs\t\t: spectre_v1\n\n"
      "processor\t: 1\nmodel name\t: another\nflags\t\t: sse4_2\n\n");
  CHECK(info.model == "Intel(R) Xeon(R) @ 2.10GHz");
  CHECK(info.instruction_sets == std::vector<std::string>{"avx2", "avx512f", "fma", "sse2"});
}

TEST_CASE("Environment: an Arm processor has numbers for a name") {
  const CpuInfo info = parse_cpuinfo(
      "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm sve i8mm\n"
      "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n\n");
  CHECK(info.model == "Arm 0x41/0xd40");
  CHECK(info.instruction_sets == std::vector<std::string>{"asimd", "fp", "i8mm", "sve"});
}

TEST_CASE("Environment: a text that says nothing gives nothing") {
  CHECK(parse_cpuinfo("").model == "");
  CHECK(parse_cpuinfo("\n\n:\nflags\n").instruction_sets.empty());
}

TEST_CASE("Environment: this machine has processors, memory and a time") {
  const Environment here = Environment::of_this_machine();
  CHECK(here.cpus >= 1);
  CHECK(here.memory_bytes > 0);
  CHECK(here.load_average >= 0);
  CHECK(here.kernel.starts_with("Linux "));
  CHECK_FALSE(here.architecture.empty());
  CHECK_FALSE(here.hasten_version.empty());
  CHECK(here.timestamp.size() == std::string("2026-01-31T12:34:56Z").size());
}

TEST_CASE("Environment: from_json is the inverse of to_json") {
  Environment there;
  there.hasten_version = "0.1.0";
  there.cpu_model = "M";
  there.kernel = "Linux 6.1";
  there.architecture = "x86_64";
  there.instruction_sets = {"avx2", "fma"};
  there.cpus = 2;
  there.memory_bytes = 8000000000;
  there.load_average = 0.25;
  there.timestamp = "2026-01-31T12:34:56Z";
  const std::string text = there.to_json().dump();
  CHECK(text == R"({"hasten_version":"0.1.0","cpu_model":"M","architecture":"x86_64",)"
                R"("kernel":"Linux 6.1","instruction_sets":["avx2","fma"],"cpus":2,)"
                R"("memory_bytes":8000000000,"load_average":0.25,"governor":null,)"
                R"("timestamp":"2026-01-31T12:34:56Z"})");
  CHECK(Environment::from_json(Json::parse(text).value()).to_json().dump() == text);
}

}  // namespace
}  // namespace hasten
