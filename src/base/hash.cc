// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>

#include <fcntl.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/file_descriptor.h"
#include "base/files.h"

namespace hasten {
namespace {

// SHA-256 is in every provider: a refusal means a broken OpenSSL, which nobody can handle here.
void require(int done) {
  if (done != 1) throw std::logic_error("OpenSSL refused to compute SHA-256");
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  }
  void add(const char* data, size_t size) { require(EVP_DigestUpdate(context_.get(), data, size)); }
  std::string hex() {
    std::array<unsigned char, 32> digest;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
    constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (const unsigned char byte : digest) {
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  HASTEN_TRY(const FileDescriptor file, open_regular_file(path, O_RDONLY));
  Sha256 hash;
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    HASTEN_TRY(const size_t got, read_some(file, buffer.data(), buffer.size(), path));
    if (got == 0) return hash.hex();
    hash.add(buffer.data(), got);
  }
}

}  // namespace hasten
