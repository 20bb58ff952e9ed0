// Encoded messages that many hold.
#pragma once

#include <memory>
#include <string_view>

namespace wavetank {

// Bytes, and the memory that they stand in, which others may share. Two that are the same pointer are the same bytes.
using BytesRef = std::shared_ptr<const std::string_view>;

}  // namespace wavetank
