#include "core/base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace wavetank {
namespace {

void Append64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

void AppendText(std::string& out, std::string_view text) {
  Append64(out, text.size());
  out += text;
}

void Encode(std::string& out, Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
            const std::vector<uint64_t>& inputs) {
  out.clear();
  Append64(out, static_cast<uint64_t>(time.time_since_epoch().count()));
  Append64(out, static_cast<uint64_t>(record.kind));
  Append64(out, static_cast<uint64_t>(record.a));
  Append64(out, static_cast<uint64_t>(record.b));
  AppendText(out, subject);
  AppendText(out, object);
  AppendText(out, record.detail);
  Append64(out, inputs.size());
  for (uint64_t input : inputs) Append64(out, input);
}

}  // namespace

struct TraceDigest::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

TraceDigest::TraceDigest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
TraceDigest::~TraceDigest() = default;

uint64_t TraceDigest::Add(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
                          const std::vector<uint64_t>& inputs) {
  Encode(buffer_, time, record, subject, object, inputs);
  XXH3_128bits_update(state_->xxh, buffer_.data(), buffer_.size());
  ++records_;
  return XXH3_64bits(buffer_.data(), buffer_.size());
}

uint64_t TraceDigest::Hash(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
                           const std::vector<uint64_t>& inputs) {
  std::string encoded;
  Encode(encoded, time, record, subject, object, inputs);
  return XXH3_64bits(encoded.data(), encoded.size());
}

std::string TraceDigest::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace wavetank
