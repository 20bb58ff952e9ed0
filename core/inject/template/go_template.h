// Go's text/template, interpreted: with its own functions, Sprig's and those of istiod's injector (Go: text/template;
// Masterminds/sprig v3; istiod: pkg/kube/inject/template.go).
//
// Of Sprig are not there what gives another result each time (dates, random texts, certificates) and what nobody needs
// to make a pod; a template that names one of these is refused with its name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/inject/template/value.h"

namespace wavetank::pilot {

class GoTemplate {
 public:
  using Function = std::function<absl::StatusOr<gotemplate::Value>(const std::vector<gotemplate::Value>& arguments)>;
  using Functions = std::map<std::string, Function>;

  // Beyond it, a template's output or one of its texts has no end.
  static constexpr size_t kMaxOutput = 16 << 20;

  // InvalidArgument in Go's words: "template: inject:12: function \"x\" not defined". `more` stands over what there is.
  static absl::StatusOr<GoTemplate> Parse(std::string_view name, std::string_view text, Functions more = {});

  // InvalidArgument: what could not be evaluated, with its line; ResourceExhausted: it goes on without end.
  absl::StatusOr<std::string> Execute(const gotemplate::Value& data) const;

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
};

namespace gotemplate {
// Go's own but for `and`, `or` and `not`, which look at as few arguments as they need.
GoTemplate::Functions BuiltInFunctions();
GoTemplate::Functions SprigFunctions();
GoTemplate::Functions SprigCollectionFunctions();
// Of istiod's injector: `annotation`, `isset`, `excludeInboundPort`, ...; all but `protoToJSON`.
GoTemplate::Functions InjectorFunctions();
}  // namespace gotemplate

}  // namespace wavetank::pilot
