// SPDX-License-Identifier: Apache-2.0
// What reading and writing of zip archives share.
#pragma once

#include <zip.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/zip.h"

namespace hasten {

// Closes without writing.
struct ZipDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using ZipHandle = std::unique_ptr<zip_t, ZipDiscard>;

// Why an entry may not be named so, as the end of a sentence; empty: it may.
std::string fault_of_entry_name(std::string_view name, EntryNames names);

}  // namespace hasten
