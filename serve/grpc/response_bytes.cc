#include "serve/grpc/response_bytes.h"

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::serve {
namespace {

// Below, copying is cheaper than a slice of its own.
constexpr size_t kShareFrom = 1024;

void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Tag and length of a field of bytes; its number is below 16.
void PutHeader(std::string* out, int field, size_t size) {
  *out += static_cast<char>(field << 3 | 2);
  PutVarint(out, size);
}

size_t FieldSize(size_t bytes) { return 1 + VarintSize(bytes) + bytes; }

void PutText(std::string* out, int field, std::string_view text) {
  if (text.empty()) return;
  PutHeader(out, field, text.size());
  *out += text;
}

// Collects slices: own bytes until something is shared.
class Builder {
 public:
  std::string* own() { return &own_; }
  void Share(const BytesRef& bytes) {
    if (bytes->size() < kShareFrom) {
      own_ += *bytes;
      return;
    }
    Flush();
    auto* held = new BytesRef(bytes);
    // gRPC only reads it.
    slices_.emplace_back(
        const_cast<char*>(bytes->data()), bytes->size(), [](void* user) { delete static_cast<BytesRef*>(user); }, held);
  }
  grpc::ByteBuffer Finish() {
    Flush();
    return {slices_.data(), slices_.size()};
  }

 private:
  void Flush() {
    if (own_.empty()) return;
    slices_.emplace_back(own_);
    own_.clear();
  }
  std::string own_;
  std::vector<grpc::Slice> slices_;
};

// google.protobuf.Any as field `field`.
void PutAny(Builder* out, int field, std::string_view url, const pilot::Resource& resource) {
  PutHeader(out->own(), field,
            FieldSize(url.size()) + (resource.bytes->empty() ? 0 : FieldSize(resource.bytes->size())));
  PutText(out->own(), 1, url);
  if (resource.bytes->empty()) return;
  PutHeader(out->own(), 2, resource.bytes->size());
  out->Share(resource.bytes);
}

}  // namespace

grpc::ByteBuffer Encode(const pilot::DiscoveryResponse& response) {
  const std::string_view url = pilot::TypeUrl(response.type);
  Builder out;
  PutText(out.own(), 1, response.version_info);
  for (const pilot::Resource& resource : response.resources) PutAny(&out, 2, url, resource);
  PutText(out.own(), 4, url);
  PutText(out.own(), 5, response.nonce);
  return out.Finish();
}

grpc::ByteBuffer Encode(const pilot::DeltaDiscoveryResponse& response) {
  const std::string_view url = pilot::TypeUrl(response.type);
  Builder out;
  PutText(out.own(), 1, response.system_version_info);
  for (const pilot::Resource& resource : response.resources) {
    // Resource{name = 3, resource = 2}
    const size_t any = FieldSize(url.size()) + (resource.bytes->empty() ? 0 : FieldSize(resource.bytes->size()));
    PutHeader(out.own(), 2, FieldSize(any) + (resource.name.empty() ? 0 : FieldSize(resource.name.size())));
    PutAny(&out, 2, url, resource);
    PutText(out.own(), 3, resource.name);
  }
  PutText(out.own(), 4, url);
  PutText(out.own(), 5, response.nonce);
  for (const std::string& name : response.removed_resources) {
    PutHeader(out.own(), 6, name.size());
    *out.own() += name;
  }
  return out.Finish();
}

}  // namespace wavetank::serve
