#include "core/istiod/trust_bundle_generator.h"

#include "core/gen/wire/wire.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace wavetank::pilot {
namespace {

constexpr int kCaCertificatesPem = 34;  // of istio.mesh.v1alpha1.ProxyConfig

class TrustBundleGenerator final : public Generator {
 public:
  explicit TrustBundleGenerator(const security::TrustBundleSources& sources) : sources_(sources) {}

  GeneratedResources Generate(const Proxy& /*proxy*/, const WatchedResource& /*watched*/,
                              const PushRequest& request) override {
    GeneratedResources out;
    out.send = request.full && request.configs_updated.empty();
    if (out.send) out.resources.push_back({"", EncodeTrustBundle(sources_.roots())});
    return out;
  }

 private:
  const security::TrustBundleSources& sources_;
};

}  // namespace

std::string EncodeTrustBundle(const std::vector<std::string>& roots) {
  return wire::Encode([&](wire::Writer& w) { w.Repeated(kCaCertificatesPem, roots); });
}

absl::StatusOr<std::vector<std::string>> DecodeTrustBundle(std::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  std::vector<std::string> out;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  bool ok = true;
  while (const uint32_t tag = ok ? in.ReadTag() : 0) {
    if (WireFormatLite::GetTagFieldNumber(tag) != kCaCertificatesPem ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      ok = WireFormatLite::SkipField(&in, tag);
      continue;
    }
    uint32_t size = 0;
    ok = in.ReadVarint32(&size) && in.ReadString(&out.emplace_back(), static_cast<int>(size));
  }
  if (!ok || !in.ConsumedEntireMessage()) return absl::InvalidArgumentError("not a ProxyConfig");
  return out;
}

std::unique_ptr<Generator> MakeTrustBundleGenerator(const security::TrustBundleSources& sources) {
  return std::make_unique<TrustBundleGenerator>(sources);
}

}  // namespace wavetank::pilot
