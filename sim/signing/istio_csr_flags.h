// istio-csr's command line, as its flag library (pflag) takes it apart, in that library's words where it cannot
// (istio-csr: cmd/app/options/options.go, pkg/istiodcert/options.go).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::sim {

class IstioCsrFlags {
 public:
  // `words` follow the program's name. InvalidArgument, in the program's words: a flag that it does not have, or a
  // value that is none of the flag's type.
  static absl::StatusOr<IstioCsrFlags> Parse(const std::vector<std::string>& words);

  // The last one of the name counts; without any the default.
  std::string Text(std::string_view name, std::string_view usual) const;
  bool Truth(std::string_view name, bool usual) const;
  int64_t Integer(std::string_view name, int64_t usual) const;
  Duration Span(std::string_view name, Duration usual) const;
  // All of the name, in the place of the default.
  std::vector<std::string> List(std::string_view name, std::vector<std::string> usual) const;
  bool Says(std::string_view name) const { return said_.contains(name); }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> said_;
};

}  // namespace wavetank::sim
