// SPDX-License-Identifier: Apache-2.0
#include "store/artifact.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>

#include "base/files.h"
#include "base/hash.h"
#include "base/test_support.h"
#include "base/text.h"

using namespace hasten;
using hasten::testing::folder_for;
namespace fs = std::filesystem;

namespace {

Tensor tensor_of(std::vector<float> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return Tensor::from<float>(values, shape);
}

Manifest manifest_of() {
  Manifest manifest;
  ArtifactGraph graph;
  graph.spec.inputs = {{"x", DType::kFloat32, {{AxisKind::kBatch, 1, 4, 1, "B"}}}};
  graph.spec.outputs = {{"y", DType::kFloat32, {{AxisKind::kBatch, 1, 4, 1, "B"}}}};
  graph.routes = {{"payload/0", {{"B", {1, 8}}}}, {"payload/1", {}}};
  manifest.graphs = {graph};
  manifest.payloads = {{"payload/0", {"one", {{"threads", "2"}}}, "1.2", {"avx2"}},
                       {"payload/1", {"two", {}}, "", {}}};
  manifest.report = Json::object({{"strategy", "one"}});
  return manifest;
}

ProofSample one_proof() {
  ProofSample proof{"0", "sample 0", {}, {}, {}};
  proof.inputs.push_back(tensor_of({1, 2}));
  proof.outputs.push_back(tensor_of({2, 4}));
  proof.tolerances = Json::Array{Json::object({{"absolute", 1e-5}, {"relative", 1e-4}})};
  return proof;
}

// A folder with two payloads in it, and the artifact made of them.
struct Made {
  TemporaryFolder folder = folder_for("artifact");
  fs::path path = folder.path() / "m.hasten";
  std::map<std::string, fs::path> payloads;

  Made() {
    for (const std::string name : {"0", "1"}) {
      const fs::path dir = folder.path() / "made" / name;
      REQUIRE(make_folder(dir / "deep"));
      REQUIRE(write_file_atomically(dir / "model.bin", std::string(300, 'a') + name));
      REQUIRE(write_file_atomically(dir / "deep" / "w.bin", "weights " + name));
      payloads["payload/" + name] = dir;
    }
  }
  Status write(const Manifest& manifest = manifest_of()) const {
    std::vector<ProofSample> proofs;
    proofs.push_back(one_proof());
    return write_artifact(path, manifest, payloads, proofs);
  }
  std::string bytes() const {
    auto content = read_file(path);
    REQUIRE(content);
    return *std::move(content);
  }
};

// All that an artifact tells, or why it does not.
Result<std::string> everything(const fs::path& path) {
  HASTEN_TRY(const ArtifactFile file, ArtifactFile::open(path));
  HASTEN_TRY_STATUS(file.verify_hashes());
  return file.manifest().to_json().dump();
}

// Changes one byte in place; the second time changes it back.
void flip(const fs::path& path, size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x20));
  REQUIRE(file.flush());
}

// A zip of these entries, as an artifact of a stranger.
Result<ArtifactFile> open_zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  const TemporaryFolder folder = folder_for("artifact");
  HASTEN_TRY(ZipWriter zip, ZipWriter::create(folder.path() / "m.hasten"));
  for (const auto& [name, content] : entries) HASTEN_TRY_STATUS(zip.add(name, content));
  HASTEN_TRY_STATUS(zip.finish());
  return ArtifactFile::open(folder.path() / "m.hasten");
}

std::string refusal(const Json& manifest) {
  const auto file = open_zip({{"manifest.json", manifest.dump()}});
  REQUIRE_FALSE(file);
  return file.error().message;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A place in a JSON value: how to change what is there, and its name in messages.
struct Place {
  std::string path;
  Json value;
  std::function<Json(Json)> with;  // The whole, with another value here.
};

void collect(const Json& value, const std::string& path, const std::function<Json(Json)>& with,
             std::vector<Place>& places) {
  if (!path.empty()) places.push_back({path, value, with});
  for (size_t i = 0; i < value.members().size(); ++i) {
    const auto& [key, member] = value.members()[i];
    collect(member, path.empty() ? key : path + "." + key,
            [&value, with, name = key](Json other) {
              return with(Json(value).set(name, std::move(other)));
            },
            places);
  }
  for (size_t i = 0; i < value.items().size(); ++i) {
    collect(value.items()[i], format("{}[{}]", path, i),
            [&value, with, i](Json other) {
              Json::Array items = value.items();
              items[i] = std::move(other);
              return with(Json(std::move(items)));
            },
            places);
  }
}

// Which values of another type than `value` a field may have.
bool is_alternative(const std::string& path, const Json& value, const Json& other) {
  const bool setting = path.starts_with("payloads[0].config.");
  if (setting) return other.is_string() || other.is_int() || other.is_bool();
  if (value.is_number() && !value.is_int()) return other.is_number();
  // Axes that do not vary have none; and an artifact need not tell how it was chosen.
  return other.is_null() && (path.ends_with(".multiplier") || path.starts_with("report"));
}

}  // namespace

TEST_CASE("artifact: what is written is read back") {
  const Made made;
  REQUIRE(made.write());
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const Manifest& manifest = file->manifest();
  CHECK(manifest.schema == 1);
  REQUIRE(manifest.graphs.size() == 1);
  CHECK(manifest.graphs[0].spec.inputs == manifest_of().graphs[0].spec.inputs);
  CHECK(manifest.graphs[0].routes[0].ranges.at("B") == std::pair<int64_t, int64_t>(1, 8));
  CHECK(manifest.graphs[0].routes[1].ranges.empty());
  CHECK(manifest.payloads[0].candidate.label() == "one:threads=2");
  CHECK(manifest.payloads[0].library_version == "1.2");
  CHECK(manifest.payloads[0].instruction_sets == std::vector<std::string>{"avx2"});
  CHECK(manifest.report["strategy"].as_string() == "one");
  CHECK(manifest.sha256.at("payload/1/deep/w.bin") == sha256("weights 1"));
  CHECK(manifest.sha256.size() == 6);
  CHECK(file->verify_hashes());
}

TEST_CASE("artifact: a payload unpacks to the files that went in") {
  const Made made;
  REQUIRE(made.write());
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const fs::path to = made.folder.path() / "out";
  REQUIRE(file->extract_payload("payload/1", to));
  CHECK(*read_file(to / "deep" / "w.bin") == "weights 1");
  CHECK(*read_file(to / "model.bin") == std::string(300, 'a') + "1");
  CHECK(testing::count_files(to) == 2);
}

TEST_CASE("artifact: a proof that does not fit its graph is named, with what is wrong") {
  const Made made;
  const auto refused = [&](ProofSample proof) {
    std::vector<ProofSample> one;
    one.push_back(std::move(proof));
    REQUIRE(write_artifact(made.path, manifest_of(), made.payloads, one));
    const auto file = ArtifactFile::open(made.path);
    REQUIRE(file);
    const auto proofs = file->proofs();
    REQUIRE_FALSE(proofs);
    CHECK(proofs.error().code == Code::kInvalidArgument);
    CHECK(proofs.error().message.find("proof 0 (sample 0)") != std::string::npos);
    return proofs.error().message;
  };
  ProofSample proof = one_proof();
  proof.tolerances = Json::array();
  CHECK(contains(refused(std::move(proof)), "1 outputs and 0 tolerances"));
  proof = one_proof();
  proof.graph = "../7";
  CHECK(contains(refused(std::move(proof)), "graph '../7', which is not there"));
  proof = one_proof();
  proof.inputs.clear();
  CHECK(contains(refused(std::move(proof)), "0 inputs given, not 1"));
  proof = one_proof();
  proof.inputs[0] = Tensor::zeros(DType::kFloat32, Shape{1, 2});
  CHECK(contains(refused(std::move(proof)), "rank 2"));
  proof = one_proof();
  proof.outputs.clear();
  CHECK(contains(refused(std::move(proof)), "0 outputs and 1 tolerances"));
}

TEST_CASE("artifact: proofs carry inputs and the original's answers") {
  const Made made;
  REQUIRE(made.write());
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const auto proofs = file->proofs();
  REQUIRE(proofs);
  REQUIRE(proofs->size() == 1);
  CHECK((*proofs)[0].what == "sample 0");
  CHECK((*proofs)[0].inputs[0].values<float>()[1] == 2);
  CHECK((*proofs)[0].outputs[0].values<float>()[1] == 4);
}

TEST_CASE("artifact: equal arguments give equal bytes") {
  const Made made;
  REQUIRE(made.write());
  const std::string first = made.bytes();
  REQUIRE(made.write());
  CHECK(made.bytes() == first);
}

TEST_CASE("artifact: a flipped byte is refused, or changes nothing") {
  const Made made;
  REQUIRE(made.write());
  const std::string whole = made.bytes();
  const auto told = everything(made.path);
  REQUIRE(told);
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    flip(made.path, i);
    const auto result = everything(made.path);
    if (result) CHECK_MESSAGE(*result == *told, "byte ", i);
    flip(made.path, i);
    if (result) continue;
    ++refused;
    CHECK_FALSE(result.error().message.empty());
  }
  CHECK(made.bytes() == whole);
  // All but fields that nobody reads, such as times.
  CHECK(refused > whole.size() * 3 / 4);
}

TEST_CASE("artifact: a damaged payload is named") {
  const Made made;
  REQUIRE(made.write());
  std::string damaged = made.bytes();
  damaged[damaged.find("weights 1")] ^= 1;
  REQUIRE(write_file_atomically(made.path, damaged));
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  CHECK(file->extract_payload("payload/0", made.folder.path() / "a"));
  const Status status = file->extract_payload("payload/1", made.folder.path() / "b");
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "payload/1/deep/w.bin"));
  CHECK_FALSE(file->verify_hashes());
}

TEST_CASE("artifact: a payload that was exchanged, with its checksum, is named") {
  const Made made;
  REQUIRE(made.write());
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const std::string manifest = file->manifest().to_json().dump();
  const fs::path forged = made.folder.path() / "forged.hasten";
  auto zip = ZipWriter::create(forged);
  REQUIRE(zip);
  REQUIRE(zip->add("manifest.json", manifest));
  for (const auto& [name, hash] : file->manifest().sha256) {
    REQUIRE(zip->add(name, name == "payload/0/model.bin" ? "other" : "weights 1"));
  }
  REQUIRE(zip->finish());
  const auto opened = ArtifactFile::open(forged);
  REQUIRE(opened);
  const fs::path to = made.folder.path() / "out";
  const Status status = opened->extract_payload("payload/0", to);
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "'payload/0/deep/w.bin' does not have the hash"));
  CHECK(opened->extract_payload("payload/0", made.folder.path() / "unverified", false));
}

TEST_CASE("artifact: one cut short at every tenth is refused") {
  const Made made;
  REQUIRE(made.write());
  const std::string whole = made.bytes();
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    REQUIRE(write_file_atomically(made.path, whole.substr(0, whole.size() * tenth / 10)));
    const auto file = ArtifactFile::open(made.path);
    REQUIRE_FALSE(file);
    CHECK(contains(file.error().message, "m.hasten"));
  }
}

TEST_CASE("artifact: an entry that leads outside is refused") {
  const Made made;
  REQUIRE(made.write());
  std::string bytes = made.bytes();
  // Of the same length, in the local header and in the directory.
  for (size_t at = 0; (at = bytes.find("payload/0/model.bin", at)) != std::string::npos; ++at) {
    bytes.replace(at, 11, "payload/../");
  }
  REQUIRE(write_file_atomically(made.path, bytes));
  const auto file = ArtifactFile::open(made.path);
  REQUIRE_FALSE(file);
  CHECK(contains(file.error().message, "payload/../"));
}

TEST_CASE("artifact: an entry without a hash, and a hash without an entry, are refused") {
  Manifest manifest = manifest_of();
  manifest.sha256["payload/0/x"] = sha256("x");
  const std::string json = manifest.to_json().dump();
  CHECK(open_zip({{"manifest.json", json}, {"payload/0/x", "x"}}));
  const auto more = open_zip({{"manifest.json", json}, {"payload/0/x", "x"}, {"payload/0/y", "y"}});
  REQUIRE_FALSE(more);
  CHECK(contains(more.error().message, "'payload/0/y' has no hash"));
  const auto less = open_zip({{"manifest.json", json}});
  REQUIRE_FALSE(less);
  CHECK(contains(less.error().message, "'payload/0/x' is missing"));
}

TEST_CASE("artifact: an entry that claims more than the file holds is refused unread") {
  const Made made;
  REQUIRE(made.write());
  std::string bytes = made.bytes();
  // In the central directory the uncompressed size stands 22 bytes before the name.
  const size_t name = bytes.rfind("payload/0/model.bin");
  const uint32_t claimed = 0xfff00000;  // 4.3 GB; more needs zip64.
  for (int i = 0; i < 4; ++i) {
    bytes[name - 22 + static_cast<size_t>(i)] = static_cast<char>(claimed >> (8 * i));
  }
  REQUIRE(write_file_atomically(made.path, bytes));
  const auto file = ArtifactFile::open(made.path);
  REQUIRE_FALSE(file);
  CHECK(contains(file.error().message, "payload/0/model.bin"));
}

TEST_CASE("artifact: a newer schema is unsupported, and both numbers are named") {
  Json json = manifest_of().to_json();
  json.set("schema", 2);
  const auto file = open_zip({{"manifest.json", json.dump()}});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == Code::kUnsupported);
  CHECK(contains(file.error().message, "schema 2"));
  CHECK(contains(file.error().message, "schema 1"));
}

TEST_CASE("artifact: a zip without a manifest, or with nonsense in it, is no artifact") {
  const auto none = open_zip({{"data.bin", "x"}});
  REQUIRE_FALSE(none);
  CHECK(contains(none.error().message, "it has no manifest.json"));
  CHECK_FALSE(open_zip({{"manifest.json", "{"}}));
  CHECK(contains(refusal(Json::object()), "has no schema number"));
  Json json = manifest_of().to_json();
  CHECK(contains(refusal(Json(json).set("graphs", Json::array())), "has no graphs"));
  CHECK(contains(refusal(Json(json).set("payloads", Json::array())), "which is no payload"));
  CHECK(contains(refusal(Json(json).set("sha256", Json::object({{"a", "short"}}))),
                 "has no SHA-256 for entry 'a'"));
}

TEST_CASE("artifact: every field of the manifest has its type, and is named where it has not") {
  const Made made;
  Manifest manifest = manifest_of();
  manifest.report = Json::object(
      {{"winner", Json::object({{"why", "it is fast"}, {"selected_batch_size", 4}})}});
  REQUIRE(made.write(manifest));
  const auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const Json whole = file->manifest().to_json();
  std::vector<Place> places;
  collect(whole, "", [](Json json) { return json; }, places);
  CHECK(places.size() > 60);
  const Json values[] = {nullptr, true, 7, 0.5, "text", Json::array(), Json::object()};
  for (const Place& place : places) {
    for (const Json& value : values) {
      const bool same = value.is_null() == place.value.is_null() &&
                        value.is_bool() == place.value.is_bool() &&
                        value.is_int() == place.value.is_int() &&
                        value.is_number() == place.value.is_number() &&
                        value.is_string() == place.value.is_string() &&
                        value.is_array() == place.value.is_array();
      if (same) continue;
      CAPTURE(place.path);
      CAPTURE(value.dump());
      const auto read = Manifest::from_json(place.with(value));
      CHECK(read.has_value() == is_alternative(place.path, place.value, value));
      if (read) continue;
      CHECK(read.error().code == Code::kInvalidArgument);
      const std::string named = place.path == "schema" ? "has no schema number"
                                : value.is_null() && place.path.ends_with(".symbol")
                                    ? "is no axis of a graph"  // Static ones have none.
                                    : "'" + place.path + "' is ";
      CHECK(contains(read.error().message, named));
      CHECK(contains(read.error().hint, "the artifact is damaged"));
    }
  }
}

TEST_CASE("artifact: a range that ends before it begins is refused") {
  Manifest manifest = manifest_of();
  manifest.graphs[0].routes[0].ranges["B"] = {8, 1};
  CHECK(contains(refusal(manifest.to_json()), "has the range [8,1] for 'B'"));
}

TEST_CASE("artifact: a payload's name cannot lead out of the folder it is unpacked to") {
  for (const std::string name : {"", "..", "../x", "/etc", "a//b", "payload/."}) {
    Manifest manifest = manifest_of();
    manifest.payloads[1].name = manifest.graphs[0].routes[1].payload = name;
    CHECK(contains(refusal(manifest.to_json()), format("a payload named '{}'", name)));
  }
  Manifest twice = manifest_of();
  twice.payloads[1].name = "payload/0";
  CHECK(contains(refusal(twice.to_json()), "two payloads named"));
}

TEST_CASE("artifact: a link in a payload is refused, and nothing is written") {
  const Made made;
  fs::create_symlink("/etc/passwd", made.payloads.at("payload/0") / "link");
  const Status status = made.write();
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "link"));
  CHECK_FALSE(fs::exists(made.path));
}

TEST_CASE("artifact: a full disk leaves the old one") {
  const Made made;
  REQUIRE(made.write());
  const std::string before = made.bytes();
  REQUIRE(write_file_atomically(made.payloads.at("payload/0") / "big", std::string(1 << 20, 'x')));
  {
    const testing::SmallDisk disk(1 << 19);
    CHECK_FALSE(made.write());
  }
  CHECK(made.bytes() == before);
}
