#include "core/envoyapi/descriptors.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/dynamic_message.h"
#include "istio/alpn.pb.h"
#include "istio/authn.pb.h"
#include "istio/metadata_exchange.pb.h"
#include "istio/stats.pb.h"

namespace wavetank::pilot {

// core/proto/extract_descriptors.py writes them.
extern const unsigned long kEnvoyApiSize;
extern const char kEnvoyApi[];

namespace {

namespace pb = ::google::protobuf;

// Descriptors are built as they are asked for: of 700 files a configuration needs a handful.
class EnvoyApi {
 public:
  EnvoyApi() {
    pb::FileDescriptorSet set;
    set.ParseFromArray(kEnvoyApi, static_cast<int>(kEnvoyApiSize));
    for (const pb::FileDescriptorProto& file : set.file()) files_.Add(file);
    // Istio's own.
    for (const pb::Descriptor* own : {::envoy::tcp::metadataexchange::config::MetadataExchange::descriptor(),
                                      ::istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig::descriptor(),
                                      ::istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig::descriptor(),
                                      ::stats::PluginConfig::descriptor()}) {
      pb::FileDescriptorProto file;
      own->file()->CopyTo(&file);
      files_.Add(file);
    }
  }

  std::unique_ptr<pb::Message> New(const std::string& name) {
    const pb::Descriptor* type = pool_.FindMessageTypeByName(name);
    if (type == nullptr) return nullptr;
    return std::unique_ptr<pb::Message>(messages_.GetPrototype(type)->New());
  }

 private:
  pb::SimpleDescriptorDatabase files_;
  pb::DescriptorPool pool_{&files_};
  pb::DynamicMessageFactory messages_{&pool_};
};

}  // namespace

std::unique_ptr<pb::Message> NewEnvoyMessage(std::string_view type_url) {
  static EnvoyApi* const api = new EnvoyApi();  // both factory and pool lock, so worlds may share them
  const size_t slash = type_url.rfind('/');
  return api->New(std::string(slash == type_url.npos ? type_url : type_url.substr(slash + 1)));
}

}  // namespace wavetank::pilot
