// An expression of the Common Expression Language that is ready to be evaluated.
// cel-cpp: eval/public; cel-go: common/types, ext; Kubernetes: staging/src/k8s.io/apiserver/pkg/cel/library
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/cel/cel_syntax.h"
#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

// What whoever evaluates lets expressions do.
struct CelDialect {
  CelWords words = CelWords::kCpp;
  bool macros = false;  // all, exists, exists_one, map, filter
  // string(), concatenation of texts and lists, and what Kubernetes' library has for texts, lists, URLs and addresses.
  bool library = false;
  int largest_program = 0;  // of a regular expression, as RE2 counts; 0: any
  bool texts = false;       // string() and concatenation, beside what `library` brings
};
// Envoy: source/extensions/filters/common/expr/evaluator.cc
inline constexpr CelDialect kEnvoyCel{CelWords::kCpp, false, false, 100};
// cel-cpp's builtins, as they come. istio/proxy: istio_stats.cc, getOrCreateExpression
inline constexpr CelDialect kIstioMetricsCel{CelWords::kCpp, true, false, 0, true};
inline constexpr CelDialect kKubernetesCel{CelWords::kGo, true, true, 0};

class CelExpression {
 public:
  // By the name of a variable; CelError: there is none.
  using Variables = std::function<CelValue(std::string_view name)>;

  // InvalidArgument: it is no expression. FailedPrecondition: it asks for what the dialect does not have. Both in the
  // library's words.
  static absl::StatusOr<CelExpression> Make(std::string_view text, const CelDialect& dialect);
  CelExpression(CelExpression&&) noexcept;
  CelExpression& operator=(CelExpression&&) noexcept;
  ~CelExpression();

  // Takes at most *budget steps and takes them off; a negative rest: it was too little, and the value a failure.
  CelValue Evaluate(const Variables& variables, int64_t* budget) const;
  // Fields of variables that it reads: "request.headers_bytes"; of a map's key the constant one.
  std::vector<std::string> Reads() const;
  // Whether it names that variable.
  bool Names(std::string_view variable) const;

 private:
  struct Node;
  struct Compiler;
  struct Evaluation;
  CelExpression(std::unique_ptr<const Node> root, const CelDialect& dialect);

  std::unique_ptr<const Node> root_;
  CelDialect dialect_;
};

}  // namespace wavetank::cel
