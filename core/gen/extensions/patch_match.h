// What the patches of EnvoyFilters ask of the object that they may apply to, and the ways to apply them that all
// objects share (istiod: pilot/pkg/networking/core/v1alpha3/envoyfilter).
#pragma once

#include <string_view>

#include "core/push/policies/envoy_filters.h"
#include "google/protobuf/message.h"

namespace wavetank::pilot::patch {

using Context = config::EnvoyFilter::Context;
using ApplyTo = config::EnvoyFilter::ApplyTo;
using Operation = config::EnvoyFilter::Operation;

// Where istiod's code panics (a patch without the value that it needs, or one of another type than what it is to be
// merged into), it recovers one level up: what was patched so far stays, what would follow is not done. Thrown and
// caught within one call of this folder's patch_*.
struct Panic {};

inline bool InContext(const EnvoyPatch& patch, Context context) {
  return patch.match->context == Context::kAny || patch.match->context == context;
}

// What of the object's kind is asked for; null: nothing, or something of another kind.
template <typename ObjectMatch>
const ObjectMatch* MatchOf(const EnvoyPatch& patch) {
  return std::get_if<ObjectMatch>(&patch.match->object);
}

// The patch's value.
template <typename T>
const T& ValueOf(const EnvoyPatch& patch) {
  const auto* value = dynamic_cast<const T*>(patch.value.get());
  if (value == nullptr) throw Panic();
  return *value;
}

// Filters may be named as Envoy named them before ("envoy.router"). A filter without such a name matches no name at
// all, too, as in 1.18.2.
bool NameMatches(std::string_view wanted, std::string_view filter);
// The name of today, if it is one of before.
std::string_view CanonicalName(std::string_view filter);

// Puts `value` at a place of the list.
template <typename List, typename T>
void InsertAt(List* list, int position, const T& value) {
  *list->Add() = value;
  for (int i = list->size() - 1; i > position; --i) list->SwapElements(i, i - 1);
}

// The first that matches; -1: none.
template <typename List, typename Matches>
int FirstOf(const List& list, Matches matches) {
  for (int i = 0; i < list.size(); ++i) {
    if (matches(list[i])) return i;
  }
  return -1;
}

// Takes out those that `removed` says.
template <typename List, typename Removed>
void EraseIf(List* list, Removed removed) {
  int kept = 0;
  for (int i = 0; i < list->size(); ++i) {
    if (removed((*list)[i])) continue;
    if (kept != i) list->SwapElements(kept, i);
    ++kept;
  }
  list->DeleteSubrange(kept, list->size() - kept);
}

// ADD, INSERT_FIRST, INSERT_BEFORE, INSERT_AFTER and REPLACE of one patch; others do nothing. `named`: the patch names
// the one that it wants to stand next to or to replace; without, it stands at the end that is nearer.
template <typename T, typename List, typename Matches>
void Place(const EnvoyPatch& patch, bool named, Matches matches, List* list) {
  switch (patch.operation) {
    case Operation::kAdd:
      *list->Add() = ValueOf<T>(patch);
      return;
    case Operation::kInsertFirst:
      return InsertAt(list, 0, ValueOf<T>(patch));
    case Operation::kInsertAfter:
      if (!named) {
        *list->Add() = ValueOf<T>(patch);
      } else if (const int at = FirstOf(*list, matches); at >= 0) {
        InsertAt(list, at + 1, ValueOf<T>(patch));
      }
      return;
    case Operation::kInsertBefore:
      if (!named) {
        InsertAt(list, 0, ValueOf<T>(patch));
      } else if (const int at = FirstOf(*list, matches); at >= 0) {
        InsertAt(list, at, ValueOf<T>(patch));
      }
      return;
    case Operation::kReplace:
      if (const int at = named ? FirstOf(*list, matches) : -1; at >= 0) (*list)[at] = ValueOf<T>(patch);
      return;
    default:
      return;
  }
}

}  // namespace wavetank::pilot::patch
