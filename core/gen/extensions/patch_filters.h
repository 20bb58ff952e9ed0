// Patches to the network and HTTP filters of one filter chain.
#pragma once

#include "core/gen/extensions/patch_match.h"
#include "envoy/config/listener/v3/listener.pb.h"

namespace wavetank::pilot::patch {

using Listener = ::envoy::config::listener::v3::Listener;
using FilterChain = ::envoy::config::listener::v3::FilterChain;

bool MatchesListener(const EnvoyPatch& patch, ApplyTo kind, const Listener& listener);
bool MatchesChain(const EnvoyPatch& patch, const Listener& listener, const FilterChain& chain);

// May throw Panic.
void PatchFilters(const EnvoyPatches& patches, Context context, const Listener& listener, FilterChain& chain);

}  // namespace wavetank::pilot::patch
