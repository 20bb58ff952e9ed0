#include "core/gen/extensions/patch_filters.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/envoyapi/any.h"
#include "core/envoyapi/merge.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"

namespace wavetank::pilot::patch {
namespace {

using config::EnvoyFilter;
using Filter = ::envoy::config::listener::v3::Filter;
using HttpConnectionManager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using HttpFilter = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;

constexpr std::string_view kConnectionManager = "envoy.filters.network.http_connection_manager";

bool IsVirtual(const Listener& listener) {
  return listener.name() == "virtualInbound" || listener.name() == "virtualOutbound";
}

const EnvoyFilter::FilterMatch* FilterMatchOf(const EnvoyPatch& patch) {
  const auto* match = MatchOf<EnvoyFilter::ListenerMatch>(patch);
  if (match == nullptr || !match->filter_chain || !match->filter_chain->filter) return nullptr;
  return &*match->filter_chain->filter;
}

const std::string* SubFilterOf(const EnvoyPatch& patch) {
  const auto* match = FilterMatchOf(patch);
  return match == nullptr || !match->sub_filter ? nullptr : &*match->sub_filter;
}

bool MatchesFilter(const EnvoyPatch& patch, const Filter& filter) {
  const auto* match = FilterMatchOf(patch);
  return match == nullptr || NameMatches(match->name, filter.name());
}

bool MatchesHttpFilter(const EnvoyPatch& patch, const HttpFilter& filter) {
  const std::string* name = SubFilterOf(patch);
  return name == nullptr || NameMatches(*name, filter.name());
}

// Renames, and merges the configurations: the patch's is taken for one of the filter's type, whatever it says.
template <typename T>
void MergeFilter(const EnvoyPatch& patch, T& filter) {
  if (!filter.has_typed_config()) return;
  const T& value = ValueOf<T>(patch);
  if (value.has_typed_config()) {
    google::protobuf::Any config = value.typed_config();
    config.set_type_url(filter.typed_config().type_url());
    MergeAny(config, *filter.mutable_typed_config());
  }
  filter.set_name(std::string(CanonicalName(value.name().empty() ? filter.name() : value.name())));
}

// Those of one list that hold for the chain.
EnvoyPatches::List Concerning(const EnvoyPatches& patches, ApplyTo kind, Context context, const Listener& listener,
                              const FilterChain& chain) {
  EnvoyPatches::List out;
  for (const EnvoyPatch* patch : patches.Of(kind)) {
    if (InContext(*patch, context) && MatchesListener(*patch, kind, listener) &&
        MatchesChain(*patch, listener, chain)) {
      out.push_back(patch);
    }
  }
  return out;
}

void PatchHttpFilters(const EnvoyPatches::List& concerning, Filter& filter) {
  HttpConnectionManager manager;
  if (filter.has_typed_config() && !filter.typed_config().UnpackTo(&manager)) return;
  auto* filters = manager.mutable_http_filters();
  EnvoyPatches::List list;
  for (const EnvoyPatch* patch : concerning) {
    if (MatchesFilter(*patch, filter)) list.push_back(patch);
  }
  for (const EnvoyPatch* patch : list) {
    Place<HttpFilter>(
        *patch, SubFilterOf(*patch) != nullptr,
        [&](const HttpFilter& candidate) { return MatchesHttpFilter(*patch, candidate); }, filters);
  }
  std::set<std::string> removed;
  for (HttpFilter& http_filter : *filters) {
    for (const EnvoyPatch* patch : list) {
      if (!MatchesHttpFilter(*patch, http_filter)) continue;
      if (patch->operation == Operation::kRemove) {
        removed.insert(http_filter.name());
        break;
      }
      if (patch->operation == Operation::kMerge) MergeFilter(*patch, http_filter);
    }
  }
  EraseIf(filters, [&](const HttpFilter& candidate) { return removed.count(candidate.name()) != 0; });
  if (filter.has_typed_config()) *filter.mutable_typed_config() = PackAny(manager);
}

}  // namespace

bool MatchesListener(const EnvoyPatch& patch, ApplyTo kind, const Listener& listener) {
  const auto* match = MatchOf<EnvoyFilter::ListenerMatch>(patch);
  if (match == nullptr) return true;
  if (!match->name.empty() && match->name != listener.name()) return false;
  // There the port is that of a filter chain.
  if (kind != ApplyTo::kListener && IsVirtual(listener)) return true;
  return match->port_number == 0 || (listener.address().has_socket_address() &&
                                     listener.address().socket_address().port_value() == match->port_number);
}

bool MatchesChain(const EnvoyPatch& patch, const Listener& listener, const FilterChain& chain) {
  const auto* match = MatchOf<EnvoyFilter::ListenerMatch>(patch);
  if (match == nullptr) return true;
  const auto& has = chain.filter_chain_match();
  if (IsVirtual(listener) && match->port_number > 0 && has.destination_port().value() != match->port_number) {
    return false;
  }
  if (!match->filter_chain) return true;
  const EnvoyFilter::FilterChainMatch& wants = *match->filter_chain;
  const auto& names = has.server_names();
  if (!wants.name.empty() && wants.name != chain.name()) return false;
  if (!wants.sni.empty() && std::find(names.begin(), names.end(), wants.sni) == names.end()) return false;
  if (!wants.transport_protocol.empty() && wants.transport_protocol != has.transport_protocol()) return false;
  return wants.destination_port == 0 ||
         (has.has_destination_port() && has.destination_port().value() == wants.destination_port);
}

void PatchFilters(const EnvoyPatches& patches, Context context, const Listener& listener, FilterChain& chain) {
  auto* filters = chain.mutable_filters();
  const EnvoyPatches::List list = Concerning(patches, ApplyTo::kNetworkFilter, context, listener, chain);
  const EnvoyPatches::List http = Concerning(patches, ApplyTo::kHttpFilter, context, listener, chain);
  for (const EnvoyPatch* patch : list) {
    Place<Filter>(
        *patch, FilterMatchOf(*patch) != nullptr,
        [&](const Filter& candidate) { return MatchesFilter(*patch, candidate); }, filters);
  }
  std::set<std::string> removed;
  for (Filter& filter : *filters) {
    bool keep = true;
    for (const EnvoyPatch* patch : list) {
      if (!MatchesFilter(*patch, filter)) continue;
      if (patch->operation == Operation::kRemove) {
        removed.insert(filter.name());
        keep = false;
        break;
      }
      if (patch->operation == Operation::kMerge) MergeFilter(*patch, filter);
    }
    if (keep && filter.name() == kConnectionManager) PatchHttpFilters(http, filter);
  }
  EraseIf(filters, [&](const Filter& candidate) { return removed.count(candidate.name()) != 0; });
}

}  // namespace wavetank::pilot::patch
