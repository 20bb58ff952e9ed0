#include "core/base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace wavetank {
namespace {

// Little-endian on every machine.
char* Write64(char* to, uint64_t value) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

// A cause may hold hundreds.
char* WriteAll(char* to, const std::vector<uint64_t>& values) {
  if constexpr (std::endian::native == std::endian::little) {
    if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(uint64_t));
    return to + values.size() * sizeof(uint64_t);
  }
  for (const uint64_t value : values) to = Write64(to, value);
  return to;
}

char* WriteText(char* to, std::string_view text) {
  to = Write64(to, text.size());
  return std::copy(text.begin(), text.end(), to);
}

// Into `out` from `at` on; returns what of it is the record's.
std::string_view Encode(std::string& out, size_t at, Time time, const TraceRecord& record, std::string_view subject,
                        std::string_view object, const std::vector<uint64_t>& inputs) {
  const size_t size = 8 * (4 + 3 + 1 + inputs.size()) + subject.size() + object.size() + record.detail.size();
  if (out.size() < at + size) out.resize(2 * (at + size));
  char* to = out.data() + at;
  to = Write64(to, static_cast<uint64_t>(time.time_since_epoch().count()));
  to = Write64(to, static_cast<uint64_t>(record.kind));
  to = Write64(to, static_cast<uint64_t>(record.a));
  to = Write64(to, static_cast<uint64_t>(record.b));
  to = WriteText(to, subject);
  to = WriteText(to, object);
  to = WriteText(to, record.detail);
  to = Write64(to, inputs.size());
  WriteAll(to, inputs);
  return {out.data() + at, size};
}

// Records are digested so many bytes at a time: one by one each would be copied once more.
constexpr size_t kBatch = 4096;

}  // namespace

struct TraceDigest::State {
  XXH3_state_t* xxh = XXH3_createState();
  std::string batch;  // encoded records, of which `waiting` bytes are not in `xxh` yet
  size_t waiting = 0;
  std::string_view last;  // the last record, encoded
  ~State() { XXH3_freeState(xxh); }

  void Digest() {
    XXH3_128bits_update(xxh, batch.data(), waiting);
    waiting = 0;
  }
};

TraceDigest::TraceDigest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
TraceDigest::~TraceDigest() = default;

void TraceDigest::Add(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
                      const std::vector<uint64_t>& inputs) {
  if (state_->waiting >= kBatch) state_->Digest();
  state_->last = Encode(state_->batch, state_->waiting, time, record, subject, object, inputs);
  state_->waiting += state_->last.size();
  ++records_;
}

uint64_t TraceDigest::LastHash() const { return XXH3_64bits(state_->last.data(), state_->last.size()); }

uint64_t TraceDigest::Hash(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
                           const std::vector<uint64_t>& inputs) {
  std::string buffer;
  const std::string_view bytes = Encode(buffer, 0, time, record, subject, object, inputs);
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string TraceDigest::Hex() const {
  state_->Digest();
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace wavetank
