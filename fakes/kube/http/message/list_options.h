// Which options of a list or a watch go together (apimachinery: pkg/apis/meta/internalversion/validation, with the
// feature WatchList).
#pragma once

#include <optional>

#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

// Kubernetes' reading of a flag that may be left out: "0" and "false" say no, all else yes. nullopt: it is not there.
std::optional<bool> OptionalFlag(const Query& query, std::string_view name);

// The refusal of options that exclude each other; nullopt: there are none.
std::optional<Response> CheckListOptions(const Query& query, bool watch);

}  // namespace wavetank::fakekube::http
