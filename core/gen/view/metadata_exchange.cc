#include "core/gen/view/metadata_exchange.h"

#include "core/envoyapi/any.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/listener_filters.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "istio/metadata_exchange.pb.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::pilot {
namespace {

using ::udpa::type::v1::TypedStruct;
using MetadataExchangePb = ::envoy::tcp::metadataexchange::config::MetadataExchange;

constexpr char kName[] = "istio.metadata_exchange";

const std::string* MakeNetworkFilter(bool discovery) {
  const google::protobuf::Any config = MetadataExchangeConfig(discovery);
  return new std::string(NetworkFilter(kName, config.type_url(), config.value()));
}

const std::string* MakeHttpFilter(const google::protobuf::Message& config) {
  ::envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter filter;
  filter.set_name(kName);
  *filter.mutable_typed_config() = PackAny(config);
  return new std::string(Serialize(filter));
}

// A null VM: the extension is part of the proxy.
const std::string* MakeWasmFilter() {
  ::envoy::extensions::filters::http::wasm::v3::Wasm wasm;
  auto* vm = wasm.mutable_config()->mutable_vm_config();
  vm->set_runtime("envoy.wasm.runtime.null");
  vm->mutable_code()->mutable_local()->set_inline_string("envoy.wasm.metadata_exchange");
  *wasm.mutable_config()->mutable_configuration() = PackAny(MetadataExchangePb());
  return MakeHttpFilter(wasm);
}

// `field`: [{method: {}}, ...]
void AddMethods(const std::string& field, std::initializer_list<const char*> methods, TypedStruct& out) {
  auto* list = (*out.mutable_value()->mutable_fields())[field].mutable_list_value();
  for (const char* method : methods) {
    (*list->add_values()->mutable_struct_value()->mutable_fields())[method].mutable_struct_value();
  }
}

const std::string* MakePeerMetadataFilter(const std::string& side, bool within = false) {
  TypedStruct config;
  config.set_type_url("type.googleapis.com/io.istio.http.peer_metadata.Config");
  AddMethods(side + "_discovery", {"istio_headers", "workload_discovery"}, config);
  AddMethods(side + "_propagation", {"istio_headers"}, config);
  if (within) {
    auto& propagation = (*config.mutable_value()->mutable_fields())[side + "_propagation"];
    auto* method = propagation.mutable_list_value()->mutable_values(0)->mutable_struct_value();
    auto* headers = (*method->mutable_fields())["istio_headers"].mutable_struct_value();
    (*headers->mutable_fields())["skip_external_clusters"].set_bool_value(true);
  }
  return MakeHttpFilter(config);
}

}  // namespace

google::protobuf::Any MetadataExchangeConfig(bool discovery) {
  MetadataExchangePb plain;
  plain.set_protocol("istio-peer-exchange");
  if (!discovery) return PackAny(plain);
  TypedStruct config;
  config.set_type_url(TypeUrlOf(plain));
  auto& fields = *config.mutable_value()->mutable_fields();
  fields["enable_discovery"].set_bool_value(true);
  fields["protocol"].set_string_value(plain.protocol());
  return PackAny(config);
}

const std::string& MetadataExchangeFilter(const PushContext& push) {
  static const std::string* const kPlain = MakeNetworkFilter(false);
  static const std::string* const kDiscovery = MakeNetworkFilter(true);
  return push.profile().Has(Change::kMetadataDiscovery) ? *kDiscovery : *kPlain;
}

const std::string& HttpMetadataExchange(const Proxy& proxy, const PushContext& push, ExchangeSide side) {
  static const std::string* const kWasm = MakeWasmFilter();
  static const std::string* const kInbound = MakePeerMetadataFilter("downstream");
  static const std::string* const kOutbound = MakePeerMetadataFilter("upstream");
  if (!DoneFor(proxy, push.profile(), Change::kPeerMetadataFilter)) return *kWasm;
  static const std::string* const kWithin = MakePeerMetadataFilter("upstream", true);
  if (side == ExchangeSide::kOutboundWithin) return *kWithin;
  return side == ExchangeSide::kInbound ? *kInbound : *kOutbound;
}

}  // namespace wavetank::pilot
