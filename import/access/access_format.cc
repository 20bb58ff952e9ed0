#include "import/access/access_format.h"

#include <algorithm>
#include <map>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// istiod: pilot/pkg/model/telemetry_logging.go, EnvoyTextLogFormat
constexpr std::string_view kIstioText =
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" "
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "
    "\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% "
    "%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% "
    "%ROUTE_NAME%";
// The same file, EnvoyJSONLogFormatIstio: as far as an import wants it.
constexpr std::string_view kIstioJson =
    R"({"start_time": "%START_TIME%", "method": "%REQ(:METHOD)%", "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
        "protocol": "%PROTOCOL%", "response_code": "%RESPONSE_CODE%", "response_flags": "%RESPONSE_FLAGS%",
        "response_code_details": "%RESPONSE_CODE_DETAILS%", "duration": "%DURATION%",
        "request_id": "%REQ(X-REQUEST-ID)%", "authority": "%REQ(:AUTHORITY)%", "upstream_host": "%UPSTREAM_HOST%",
        "upstream_cluster": "%UPSTREAM_CLUSTER%", "upstream_local_address": "%UPSTREAM_LOCAL_ADDRESS%",
        "downstream_local_address": "%DOWNSTREAM_LOCAL_ADDRESS%",
        "downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%",
        "requested_server_name": "%REQUESTED_SERVER_NAME%"})";
// envoy: source/common/formatter/substitution_format_utility, the default access log format
constexpr std::string_view kEnvoyText =
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "
    "\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\"";

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

AccessField FieldOf(std::string_view name, std::string_view argument) {
  static const auto* const kNames =
      new std::map<std::string_view, AccessField>{{"START_TIME", AccessField::kStartTime},
                                                  {"PROTOCOL", AccessField::kProtocol},
                                                  {"RESPONSE_CODE", AccessField::kCode},
                                                  {"RESPONSE_FLAGS", AccessField::kFlags},
                                                  {"RESPONSE_CODE_DETAILS", AccessField::kDetails},
                                                  {"DURATION", AccessField::kDuration},
                                                  {"UPSTREAM_HOST", AccessField::kUpstreamHost},
                                                  {"UPSTREAM_REMOTE_ADDRESS", AccessField::kUpstreamHost},
                                                  {"UPSTREAM_CLUSTER", AccessField::kUpstreamCluster},
                                                  {"UPSTREAM_CLUSTER_RAW", AccessField::kUpstreamCluster},
                                                  {"UPSTREAM_LOCAL_ADDRESS", AccessField::kUpstreamLocal},
                                                  {"DOWNSTREAM_LOCAL_ADDRESS", AccessField::kDownstreamLocal},
                                                  {"DOWNSTREAM_REMOTE_ADDRESS", AccessField::kDownstreamRemote},
                                                  {"DOWNSTREAM_DIRECT_REMOTE_ADDRESS", AccessField::kDownstreamRemote},
                                                  {"REQUESTED_SERVER_NAME", AccessField::kServerName},
                                                  {"HOSTNAME", AccessField::kHostname}};
  if (name == "REQ" || name == "REQ_WITHOUT_QUERY") {
    // "MAIN?ALTERNATIVE": whichever is there.
    const std::string header = Upper(argument);
    const std::string_view last = std::string_view(header).substr(header.find('?') + 1);
    if (last == ":PATH") return AccessField::kPath;
    if (last == ":METHOD") return AccessField::kMethod;
    if (last == ":AUTHORITY" || last == "HOST") return AccessField::kAuthority;
    if (last == "X-REQUEST-ID") return AccessField::kRequestId;
    return AccessField::kOther;
  }
  const auto it = kNames->find(name);
  return it == kNames->end() ? AccessField::kOther : it->second;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 12 && text.find_first_not_of("0123456789") == text.npos;
}

// START_TIME with a format of its own: strftime's words, %f, %1f to %9f for fractions, %s for seconds since 1970
// (envoy: source/common/common/utility.cc, DateFormatter).
WallNs ParseByFormat(std::string_view text, std::string_view format) {
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  int64_t year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, nanos = 0, offset = 0, unix_seconds = 0;
  bool is_unix = false;
  size_t at = 0;
  const auto number = [&](size_t most, int64_t& out) {
    size_t end = at;
    while (end < text.size() && end - at < most && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at || !ReadInteger(text.substr(at, end - at), out)) return false;
    at = end;
    return true;
  };
  const auto fraction = [&](size_t digits) {
    int64_t value = 0;
    const size_t begin = at;
    if (!number(digits, value)) return false;
    for (size_t i = at - begin; i < 9; ++i) value *= 10;
    nanos = value;
    return true;
  };
  const auto literal = [&](char c) { return at < text.size() && text[at] == c && ++at > 0; };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      if (!literal(format[i])) return kNoTime;
      continue;
    }
    size_t digits = 9;
    char c = format[++i];
    if (c >= '1' && c <= '9' && i + 1 < format.size() && format[i + 1] == 'f') {
      digits = static_cast<size_t>(c - '0');
      c = format[++i];
    }
    bool good = true;
    switch (c) {
      case 'Y':
        good = number(4, year);
        break;
      case 'm':
        good = number(2, month);
        break;
      case 'd':
        good = number(2, day);
        break;
      case 'H':
        good = number(2, hour);
        break;
      case 'M':
        good = number(2, minute);
        break;
      case 'S':
        good = number(2, second);
        break;
      case 'F':
        good = number(4, year) && literal('-') && number(2, month) && literal('-') && number(2, day);
        break;
      case 'T':
        good = number(2, hour) && literal(':') && number(2, minute) && literal(':') && number(2, second);
        break;
      case 'f':
        good = fraction(digits);
        break;
      case 's':
        good = is_unix = number(12, unix_seconds);
        break;
      case 'b': {
        const auto it = std::find(kMonths.begin(), kMonths.end(), text.substr(std::min(at, text.size()), 3));
        good = it != kMonths.end();
        month = it - kMonths.begin() + 1;
        at += 3;
        break;
      }
      case 'z': {
        const bool minus = at < text.size() && text[at] == '-';
        int64_t hours = 0, minutes = 0;
        good = (literal('+') || literal('-')) && number(2, hours) && (literal(':') || true) && number(2, minutes);
        offset = (minus ? -1 : 1) * (hours * 3600 + minutes * 60);
        break;
      }
      case 'Z':
        while (at < text.size() && ((text[at] >= 'A' && text[at] <= 'Z'))) ++at;
        break;
      case '%':
        good = literal('%');
        break;
      default:
        return kNoTime;
    }
    if (!good) return kNoTime;
  }
  if (at != text.size()) return kNoTime;
  if (is_unix) return unix_seconds > 9'000'000'000 ? kNoTime : unix_seconds * 1'000'000'000 + nanos;
  const WallNs plain = ParseWall(
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", year, month, day, hour, minute, second, nanos));
  return plain == kNoTime ? kNoTime : plain - offset * 1'000'000'000;
}

}  // namespace

absl::StatusOr<AccessFormat::Template> AccessFormat::ReadTemplate(std::string_view format) {
  Template out;
  std::string* literal = &out.before;
  for (size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      *literal += format[i++];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      *literal += '%';
      i += 2;
      continue;
    }
    // %NAME%, %NAME(ARGUMENT)%, %NAME(ARGUMENT):LENGTH%
    const size_t begin = i + 1;
    size_t end = begin;
    while (end < format.size() && ((format[end] >= 'A' && format[end] <= 'Z') || format[end] == '_')) ++end;
    const std::string_view name = format.substr(begin, end - begin);
    std::string_view argument;
    if (end < format.size() && format[end] == '(') {
      const size_t close = format.find(')', end);
      if (close != format.npos) argument = format.substr(end + 1, close - end - 1);
      end = close == format.npos ? format.size() : close + 1;
    }
    if (end < format.size() && format[end] == ':') {
      ++end;
      while (end < format.size() && format[end] >= '0' && format[end] <= '9') ++end;
    }
    if (name.empty() || end >= format.size() || format[end] != '%') {
      return absl::InvalidArgumentError(
          fmt::format("access log format: no operator at '{}'; write %NAME% or %NAME(ARGUMENT):LENGTH%",
                      format.substr(i, std::min<size_t>(format.size() - i, 30))));
    }
    if (!out.operators.empty() && out.operators.back().after.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("access log format: nothing stands between %{}% and what is before it, so that no line can be "
                      "taken apart",
                      name));
    }
    Operator& op = out.operators.emplace_back();
    op.field = FieldOf(name, argument);
    if (op.field == AccessField::kStartTime) op.time_format = argument;
    literal = &op.after;
    i = end + 1;
  }
  return out;
}

absl::StatusOr<AccessFormat> AccessFormat::Parse(std::string_view format) {
  AccessFormat out;
  const auto has_start = [](const Template& shape) {
    return std::any_of(shape.operators.begin(), shape.operators.end(),
                       [](const Operator& op) { return op.field == AccessField::kStartTime; });
  };
  while (!format.empty() && (format.back() == '\n' || format.back() == '\r')) format.remove_suffix(1);
  if (format.ends_with("\\n")) format.remove_suffix(2);  // as YAML's plain scalars have it
  bool timed = false;
  if (format.starts_with('{')) {
    const json parsed = ParseJson(format);
    if (!parsed.is_object()) {
      return absl::InvalidArgumentError("access log format: it begins with '{' and is no JSON object");
    }
    out.json_ = true;
    const auto visit = [&](const auto& self, const json& object, const std::vector<std::string>& above,
                           int depth) -> absl::Status {
      for (const auto& [key, value] : object.items()) {
        std::vector<std::string> path = above;
        path.push_back(key);
        if (value.is_object() && depth < 8) {
          if (absl::Status status = self(self, value, path, depth + 1); !status.ok()) return status;
        }
        if (!value.is_string()) continue;
        absl::StatusOr<Template> shape = ReadTemplate(TextOf(value));
        if (!shape.ok()) return shape.status();
        timed = timed || has_start(*shape);
        if (!shape->operators.empty()) out.fields_.emplace_back(std::move(path), *std::move(shape));
      }
      return absl::OkStatus();
    };
    if (absl::Status status = visit(visit, parsed, {}, 0); !status.ok()) return status;
  } else {
    absl::StatusOr<Template> shape = ReadTemplate(format);
    if (!shape.ok()) return shape.status();
    out.text_ = *std::move(shape);
    timed = has_start(out.text_);
  }
  if (!timed) {
    return absl::InvalidArgumentError(
        "access log format: it has no %START_TIME%, so that no line tells when it happened");
  }
  return out;
}

const std::vector<AccessFormat>& AccessFormat::Known() {
  static const auto* const kKnown = [] {
    auto* out = new std::vector<AccessFormat>;
    for (const std::string_view format : {kIstioText, kIstioJson, kEnvoyText}) out->push_back(*Parse(format));
    return out;
  }();
  return *kKnown;
}

bool AccessFormat::Put(const Operator& op, std::string_view value, AccessLine& out) {
  if (value == "-") value = {};
  if (op.field == AccessField::kOther) return true;
  out.values[static_cast<size_t>(op.field)] = value;
  switch (op.field) {
    case AccessField::kStartTime:
      out.start = op.time_format.empty() ? ParseWall(value) : ParseByFormat(value, op.time_format);
      return out.start != kNoTime;
    case AccessField::kCode:
      return value.empty() || (IsNumber(value) && value.size() <= 3 && ReadInteger(value, out.code));
    case AccessField::kDuration:
      return value.empty() || (IsNumber(value) && ReadInteger(value, out.duration_ms));
    default:
      return true;
  }
}

bool AccessFormat::Match(const Template& shape, std::string_view line, AccessLine& out) {
  if (!line.starts_with(shape.before)) return false;
  line.remove_prefix(shape.before.size());
  for (size_t i = 0; i < shape.operators.size(); ++i) {
    const Operator& op = shape.operators[i];
    const bool last = i + 1 == shape.operators.size();
    size_t end = line.size();
    if (last) {
      if (!line.ends_with(op.after)) return false;
      end -= op.after.size();
    } else {
      end = line.find(op.after);
      if (end == line.npos) return false;
    }
    if (!Put(op, line.substr(0, end), out)) return false;
    line.remove_prefix(end + op.after.size());
  }
  return line.empty();
}

bool AccessFormat::ReadJson(std::string_view line, AccessLine& out) const {
  const json parsed = ParseJson(line);
  if (!parsed.is_object()) return false;
  // All texts first: a string that grows moves what points into it.
  std::vector<std::pair<const Template*, std::pair<size_t, size_t>>> found;
  out.text.clear();
  for (const auto& [path, shape] : fields_) {
    const json* at = &parsed;
    for (const std::string& key : path) at = &At(*at, key);
    const size_t begin = out.text.size();
    if (at->is_string()) {
      out.text += at->get_ref<const std::string&>();
    } else if (at->is_number_integer()) {
      out.text += std::to_string(at->get<int64_t>());
    } else {
      continue;
    }
    found.emplace_back(&shape, std::pair(begin, out.text.size() - begin));
  }
  for (const auto& [shape, where] : found) {
    if (!Match(*shape, std::string_view(out.text).substr(where.first, where.second), out)) return false;
  }
  return out.start != kNoTime;
}

bool AccessFormat::Read(std::string_view line, AccessLine& out) const {
  out.values.fill({});
  out.start = kNoTime;
  out.code = 0;
  out.duration_ms = -1;
  if (json_) return line.starts_with('{') && ReadJson(line, out);
  return Match(text_, line, out) && out.start != kNoTime;
}

}  // namespace wavetank::importing
