#include "fakes/envoy/config/http_filter.h"

#include <atomic>

#include "fakes/envoy/tcp/header_lines.h"

namespace wavetank::envoysim {

uint64_t NextFilterId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void ReplyHead::Remove(std::string_view name) {
  std::string kept;
  ForEachHeader(headers, [&](std::string_view key, std::string_view value) {
    if (key != name) AddHeaderLine(key, value, &kept);
  });
  headers = std::move(kept);
}

}  // namespace wavetank::envoysim
