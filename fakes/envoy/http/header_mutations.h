// Mutations of headers one after the other: envoy.config.common.mutation_rules.v3.HeaderMutation.
// Envoy: source/common/http/header_mutation.cc
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/http/header_operations.h"
#include "fakes/envoy/match/matchers.h"
#include "nlohmann/json_fwd.hpp"

namespace wavetank::envoysim {

class HeaderMutations {
 public:
  // `list`: of such messages, as ConfigJson() has them. InvalidArgument with Envoy's words.
  static absl::StatusOr<HeaderMutations> Make(const nlohmann::json& list, const Extensions& extensions);

  bool empty() const { return all_.empty(); }
  // What formats print comes from `entry`, but for the headers that are changed: of those each sees what is there when
  // its turn comes.
  void Apply(AccessLogEntry entry, RequestEdit* request) const;
  void Apply(AccessLogEntry entry, std::string* lines) const;  // of an answer's head
  void ApplyToTrailers(AccessLogEntry entry, std::string* lines) const;
  void ApplyToRequestTrailers(AccessLogEntry entry, RequestEdit* request) const;  // which no format sees

 private:
  struct Mutation {
    std::optional<HeaderAddition> append;
    std::string remove;  // in lower case
    std::optional<StringMatch> remove_on_match;
  };

  template <typename Headers, typename See>
  void ApplyEach(const Headers& headers, const See& see, AccessLogEntry* entry) const;
  void ApplyToLines(AccessLogEntry entry, std::string_view AccessLogEntry::*seen, std::string* lines) const;

  std::vector<Mutation> all_;
};

}  // namespace wavetank::envoysim
