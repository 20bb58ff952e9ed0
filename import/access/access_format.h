// A line of an Envoy's access log into its values, by the format that it was written in: Istio's text and JSON, Envoy's
// own text, or any other that is given (command operators between literal texts).
//
// Fault model: any bytes. A line that does not have a format's shape is not of it; nothing is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "import/evidence/evidence.h"

namespace wavetank::importing {

// What an import wants of a line. Other operators are passed over.
enum class AccessField : uint8_t {
  kOther,
  kStartTime,
  kMethod,
  kPath,
  kAuthority,
  kProtocol,
  kCode,
  kFlags,
  kDetails,
  kDuration,
  kRequestId,
  kUpstreamHost,
  kUpstreamCluster,
  kUpstreamLocal,
  kDownstreamLocal,
  kDownstreamRemote,
  kServerName,
  kHostname,
  kCount
};

// One line's values; what is not there ("-", null) is empty. Valid as long as the line, and until the next one.
struct AccessLine {
  std::string_view operator[](AccessField field) const { return values[static_cast<size_t>(field)]; }

  std::array<std::string_view, static_cast<size_t>(AccessField::kCount)> values;
  WallNs start = kNoTime;
  int64_t code = 0;          // 0: none
  int64_t duration_ms = -1;  // -1: not told
  std::string text;          // of JSON, which `values` point into
};

class AccessFormat {
 public:
  // Envoy's command language; a text that begins with '{' is a JSON format. InvalidArgument: it is none, or lacks what
  // makes a request of a line (START_TIME), or has two operators with nothing between them.
  static absl::StatusOr<AccessFormat> Parse(std::string_view format);
  // Istio 1.9 and later in text and JSON, and Envoy's default.
  static const std::vector<AccessFormat>& Known();

  bool Read(std::string_view line, AccessLine& out) const;

 private:
  struct Operator {
    AccessField field = AccessField::kOther;
    std::string time_format;  // of START_TIME; empty: RFC 3339
    std::string after;        // literal text behind it
  };
  struct Template {
    std::string before;
    std::vector<Operator> operators;
  };
  static absl::StatusOr<Template> ReadTemplate(std::string_view format);
  static bool Match(const Template& shape, std::string_view line, AccessLine& out);
  static bool Put(const Operator& op, std::string_view value, AccessLine& out);
  bool ReadJson(std::string_view line, AccessLine& out) const;

  bool json_ = false;
  Template text_;
  std::vector<std::pair<std::vector<std::string>, Template>> fields_;  // of JSON: the path to each
};

}  // namespace wavetank::importing
