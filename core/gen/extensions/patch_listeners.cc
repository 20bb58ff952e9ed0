#include "core/gen/extensions/patch_listeners.h"

#include <set>
#include <utility>

#include "core/envoyapi/any.h"
#include "core/envoyapi/merge.h"
#include "core/gen/extensions/patch_filters.h"

namespace wavetank::pilot {
namespace patch {
namespace {

using config::EnvoyFilter;
using ListenerFilter = ::envoy::config::listener::v3::ListenerFilter;

class ListenerPatcher {
 public:
  ListenerPatcher(const EnvoyPatches& patches, Context context) : patches_(patches), context_(context) {}

  void Patch(std::vector<Listener>& listeners, bool may_add) {
    for (Listener& listener : listeners) Patch(listener);
    std::vector<Listener> added;
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kListener)) {
      if (!may_add || patch->operation != Operation::kAdd || !InContext(*patch, context_)) continue;
      // In any context means once, not inbound as well.
      if (patch->match->context == Context::kAny && context_ == Context::kSidecarInbound) continue;
      added.push_back(ValueOf<Listener>(*patch));
    }
    for (Listener& listener : added) listeners.push_back(std::move(listener));
    // One that was removed has no name any more, nor has one that came without.
    if (removed_) std::erase_if(listeners, [](const Listener& listener) { return listener.name().empty(); });
  }

 private:
  void Patch(Listener& listener) {
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kListener)) {
      if (!InContext(*patch, context_) || !MatchesListener(*patch, ApplyTo::kListener, listener)) continue;
      if (patch->operation == Operation::kRemove) {
        listener.clear_name();
        removed_ = true;
        return;
      }
      if (patch->operation == Operation::kMerge) MergeEnvoyMessage(ValueOf<Listener>(*patch), listener);
    }
    PatchListenerFilters(listener);
    PatchFilterChains(listener);
  }

  void PatchListenerFilters(Listener& listener) {
    auto* filters = listener.mutable_listener_filters();
    std::set<std::string> removed;
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kListenerFilter)) {
      if (!InContext(*patch, context_) || !MatchesListener(*patch, ApplyTo::kListenerFilter, listener)) continue;
      const auto* match = MatchOf<EnvoyFilter::ListenerMatch>(*patch);
      const bool named = match != nullptr && !match->listener_filter.empty();
      const auto matches = [&](const ListenerFilter& filter) {
        return !named || NameMatches(match->listener_filter, filter.name());
      };
      if (patch->operation == Operation::kRemove) {
        if (const int at = named ? FirstOf(*filters, matches) : -1; at >= 0) removed.insert((*filters)[at].name());
      } else {
        Place<ListenerFilter>(*patch, named, matches, filters);
      }
    }
    EraseIf(filters, [&](const ListenerFilter& filter) { return removed.count(filter.name()) != 0; });
  }

  // A chain without filters takes no patches, and goes when another one is removed.
  void PatchFilterChains(Listener& listener) {
    auto* chains = listener.mutable_filter_chains();
    std::vector<char> gone;
    bool any_removed = false;
    for (FilterChain& chain : *chains) {
      bool has_filters = chain.filters_size() > 0;
      if (has_filters && PatchFilterChain(listener, chain)) {
        any_removed = true;
        has_filters = false;
      }
      gone.push_back(!has_filters);
    }
    if (listener.default_filter_chain().filters_size() > 0 &&
        PatchFilterChain(listener, *listener.mutable_default_filter_chain())) {
      listener.clear_default_filter_chain();
    }
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kFilterChain)) {
      if (patch->operation != Operation::kAdd || !InContext(*patch, context_)) continue;
      if (!MatchesListener(*patch, ApplyTo::kFilterChain, listener)) continue;
      *chains->Add() = ValueOf<FilterChain>(*patch);
      gone.push_back((*chains)[chains->size() - 1].filters_size() == 0);
    }
    size_t next = 0;
    if (any_removed) EraseIf(chains, [&](const FilterChain&) { return gone[next++] != 0; });
  }

  // True: removed.
  bool PatchFilterChain(const Listener& listener, FilterChain& chain) {
    for (const EnvoyPatch* patch : patches_.Of(ApplyTo::kFilterChain)) {
      if (!InContext(*patch, context_) || !MatchesListener(*patch, ApplyTo::kFilterChain, listener) ||
          !MatchesChain(*patch, listener, chain)) {
        continue;
      }
      if (patch->operation == Operation::kRemove) return true;
      if (patch->operation == Operation::kMerge) MergeChain(*patch, chain);
    }
    PatchFilters(patches_, context_, listener, chain);
    return false;
  }

  // A transport socket goes into the one of its name, and then nothing else of the patch is merged. istiod:
  // mergeTransportSocketListener.
  static void MergeChain(const EnvoyPatch& patch, FilterChain& chain) {
    const auto* value = dynamic_cast<const FilterChain*>(patch.value.get());
    if (value == nullptr) return;
    const bool same_socket = value->has_transport_socket() && chain.has_transport_socket() &&
                             value->transport_socket().name() == chain.transport_socket().name();
    if (!same_socket) return MergeEnvoyMessage(*value, chain);
    if (!value->transport_socket().has_typed_config() || !chain.transport_socket().has_typed_config()) return;
    const MergeResult result =
        MergeAny(value->transport_socket().typed_config(), *chain.mutable_transport_socket()->mutable_typed_config());
    if (result == MergeResult::kDifferentTypes) throw Panic();
  }

  const EnvoyPatches& patches_;
  const Context context_;
  bool removed_ = false;
};

}  // namespace
}  // namespace patch

std::vector<Resource> PatchListeners(const EnvoyPatches& patches, patch::Context context,
                                     const std::vector<std::string>& encoded, bool may_add) {
  std::vector<patch::Listener> listeners(encoded.size());
  for (size_t i = 0; i < encoded.size(); ++i) listeners[i].ParseFromString(encoded[i]);
  try {
    patch::ListenerPatcher(patches, context).Patch(listeners, may_add);
  } catch (const patch::Panic&) {
  }
  std::vector<Resource> out;
  out.reserve(listeners.size());
  for (const patch::Listener& listener : listeners) out.emplace_back(listener.name(), Serialize(listener));
  return out;
}

}  // namespace wavetank::pilot
