#include "core/base/cel/cel_formats.h"

#include <iterator>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/base/text/go_url.h"
#include "core/base/text/kube_names.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::cel {
namespace {

class NamedFormat final : public CelMap {
 public:
  explicit NamedFormat(CelFormatKind which) : kind(which) {}
  CelValue Get(const CelValue&) const override { return {}; }
  std::optional<int64_t> size() const override { return std::nullopt; }
  const CelFormatKind kind;
};

constexpr std::string_view kFormatNames[] = {"dns1123Label",
                                             "dns1123Subdomain",
                                             "dns1035Label",
                                             "qualifiedName",
                                             "dns1123LabelPrefix",
                                             "dns1123SubdomainPrefix",
                                             "dns1035LabelPrefix",
                                             "labelValue",
                                             "uri",
                                             "uuid",
                                             "byte",
                                             "date",
                                             "datetime"};

struct FormatRule {
  size_t longest;
  bool (*reads)(std::string_view);
  const char* says;
};
constexpr FormatRule kDnsLabel = {kLongestDnsLabel, ReadsAsDnsLabel, kDnsLabelSays};
constexpr FormatRule kDnsSubdomain = {kLongestDnsSubdomain, ReadsAsDnsSubdomain, kDnsSubdomainSays};
constexpr FormatRule kLabel1035 = {kLongestDnsLabel, ReadsAsDns1035Label, kDns1035LabelSays};
constexpr FormatRule kQualified = {kLongestDnsLabel, ReadsAsQualifiedPart, kQualifiedNameSays};
constexpr FormatRule kOfLabels = {kLongestDnsLabel, ReadsAsLabelValue, kLabelValueSays};

std::vector<std::string> AgainstRule(std::string_view text, const FormatRule& rule) {
  std::vector<std::string> out;
  if (text.size() > rule.longest) out.push_back(fmt::format("must be no more than {} characters", rule.longest));
  if (!rule.reads(text)) out.emplace_back(rule.says);
  return out;
}

// A name that something is to follow may end with a dash. Kubernetes: api/validation/generic.go, maskTrailingDash
std::vector<std::string> AgainstPrefix(std::string_view text, const FormatRule& rule) {
  if (text.size() <= 1 || !text.ends_with('-')) return AgainstRule(text, rule);
  return AgainstRule(std::string(text.substr(0, text.size() - 2)) + "a", rule);
}

std::vector<std::string> AgainstQualifiedName(std::string_view text) {
  std::vector<std::string> out;
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), '/');
  if (parts.size() > 2) {
    return {fmt::format("a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                        kQualified.says)};
  }
  if (parts.size() == 2 && parts[0].empty()) out.emplace_back("prefix part must be non-empty");
  if (parts.size() == 2 && !parts[0].empty()) {
    for (const std::string& wrong : AgainstRule(parts[0], kDnsSubdomain)) out.push_back("prefix part " + wrong);
  }
  const std::string& name = parts.back();
  if (name.empty()) out.emplace_back("name part must be non-empty");
  for (const std::string& wrong : AgainstRule(name, kQualified)) out.push_back("name part " + wrong);
  return out;
}

// As Go's url.ParseRequestURI: a whole address, or a path from the root.
bool IsRequestUri(std::string_view text) {
  const std::optional<GoUrl> url = ParseGoUrl(text);
  return url && (!url->scheme.empty() || text.starts_with('/'));
}

bool IsFullDate(std::string_view text) {
  absl::CivilDay day;
  // Go: time.Parse("2006-01-02")
  return RE2::FullMatch(text, "[0-9]{4}-[0-9]{2}-[0-9]{2}") &&
         absl::ParseCivilTime(absl::string_view(text.data(), text.size()), &day);
}

// kube-openapi: pkg/validation/strfmt/time.go, IsDateTime
bool IsDateTime(std::string_view text) {
  const std::string lower = absl::AsciiStrToLower(std::string(text));
  const std::vector<std::string> parts = absl::StrSplit(lower, 't');
  std::string hours, minutes, seconds;
  return parts.size() >= 2 && IsFullDate(parts[0]) &&
         RE2::FullMatch(parts[1], "([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|(?:[+-][0-9]{2}:[0-9]{2}))", &hours,
                        &minutes, &seconds) &&
         hours <= "23" && minutes <= "59" && seconds <= "59";
}

}  // namespace

CelValue MakeFormat(CelFormatKind kind) { return {std::shared_ptr<const CelMap>(std::make_shared<NamedFormat>(kind))}; }

std::optional<CelFormatKind> FindFormat(std::string_view name) {
  for (size_t i = 0; i < std::size(kFormatNames); ++i) {
    if (kFormatNames[i] == name) return static_cast<CelFormatKind>(i);
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> WrongWith(std::string_view text, const CelMap& object) {
  using Wrong = std::vector<std::string>;
  const auto* const format = dynamic_cast<const NamedFormat*>(&object);
  if (format == nullptr) return std::nullopt;
  const auto unless = [](bool right, std::string_view says) { return right ? Wrong() : Wrong{std::string(says)}; };
  switch (format->kind) {
    case CelFormatKind::kDns1123Label:
      return AgainstRule(text, kDnsLabel);
    case CelFormatKind::kDns1123Subdomain:
      return AgainstRule(text, kDnsSubdomain);
    case CelFormatKind::kDns1035Label:
      return AgainstRule(text, kLabel1035);
    case CelFormatKind::kQualifiedName:
      return AgainstQualifiedName(text);
    case CelFormatKind::kDns1123LabelPrefix:
      return AgainstPrefix(text, kDnsLabel);
    case CelFormatKind::kDns1123SubdomainPrefix:
      return AgainstPrefix(text, kDnsSubdomain);
    case CelFormatKind::kDns1035LabelPrefix:
      return AgainstPrefix(text, kLabel1035);
    case CelFormatKind::kLabelValue:
      return AgainstRule(text, kOfLabels);
    case CelFormatKind::kUri:
      return unless(IsRequestUri(text),
                    fmt::format("parse \"{}\": {}", text, text.empty() ? "empty url" : "invalid URI for request"));
    case CelFormatKind::kUuid:
      return unless(RE2::FullMatch(text, "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
                    "does not match the UUID format");
    case CelFormatKind::kByte:
      return unless(
          RE2::FullMatch(text, "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
          "invalid base64");
    case CelFormatKind::kDate:
      return unless(IsFullDate(text), "invalid date");
    case CelFormatKind::kDateTime:
      return unless(IsDateTime(text), "invalid datetime");
  }
  return Wrong();
}

}  // namespace wavetank::cel
