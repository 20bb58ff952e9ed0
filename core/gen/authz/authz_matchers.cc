#include "core/gen/authz/authz_matchers.h"

#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/type/matcher/v3/metadata.pb.h"
#include "envoy/type/matcher/v3/path.pb.h"
#include "envoy/type/matcher/v3/regex.pb.h"
#include "envoy/type/matcher/v3/string.pb.h"
#include "envoy/type/matcher/v3/value.pb.h"

namespace wavetank::pilot::authz {
namespace {

namespace matcher = ::envoy::type::matcher::v3;
using StringPb = matcher::StringMatcher;
using HeaderPb = ::envoy::config::route::v3::HeaderMatcher;
using MetadataPb = matcher::MetadataMatcher;

constexpr std::string_view kSpiffe = "spiffe://";
constexpr std::string_view kAnything = "*";

void WriteRegex(wire::Writer& w, std::initializer_list<std::string_view> regex) {
  w.Message(StringPb::kSafeRegexFieldNumber, [&] { w.Joined(matcher::RegexMatcher::kRegexFieldNumber, regex); });
}

// The first star only counts: "*x*" ends with "x*".
void WritePattern(wire::Writer& w, std::string_view value, std::string_view before) {
  if (value == kAnything) {
    WriteRegex(w, {".+"});
  } else if (value.starts_with('*')) {
    if (before.empty()) {
      w.Bytes(StringPb::kSuffixFieldNumber, value.substr(1));
    } else {
      WriteRegex(w, {before, ".*", value.substr(1)});
    }
  } else if (value.ends_with('*')) {
    w.Joined(StringPb::kPrefixFieldNumber, {before, value.substr(0, value.size() - 1)});
  } else {
    w.Joined(StringPb::kExactFieldNumber, {before, value});
  }
}

}  // namespace

void WriteStringMatcher(wire::Writer& w, int field, std::string_view value) {
  w.Message(field, [&] { WritePattern(w, value, {}); });
}

void WritePrincipalMatcher(wire::Writer& w, int field, std::string_view principal) {
  w.Message(field, [&] { WritePattern(w, principal, kSpiffe); });
}

void WriteRegexMatcher(wire::Writer& w, int field, std::string_view regex) {
  w.Message(field, [&] { WriteRegex(w, {regex}); });
}

void WriteHeaderMatcher(wire::Writer& w, int field, std::string_view name, std::string_view value) {
  // Of the fields that are deprecated since, as 1.18 writes them.
  w.Message(field, [&] {
    w.NonEmpty(HeaderPb::kNameFieldNumber, name);
    if (value == kAnything) {
      w.Bool(HeaderPb::kPresentMatchFieldNumber, true);
    } else if (value.starts_with('*')) {
      w.Bytes(HeaderPb::kSuffixMatchFieldNumber, value.substr(1));
    } else if (value.ends_with('*')) {
      w.Bytes(HeaderPb::kPrefixMatchFieldNumber, value.substr(0, value.size() - 1));
    } else {
      w.Bytes(HeaderPb::kExactMatchFieldNumber, value);
    }
  });
}

void WriteHostMatcher(wire::Writer& w, int field, std::string_view value) {
  w.Message(field, [&] {
    w.Bytes(HeaderPb::kNameFieldNumber, ":authority");
    if (value == kAnything) {
      w.Bool(HeaderPb::kPresentMatchFieldNumber, true);
      return;
    }
    w.Message(HeaderPb::kStringMatchFieldNumber, [&] {
      WritePattern(w, value, {});
      w.Bool(StringPb::kIgnoreCaseFieldNumber, true);
    });
  });
}

void WritePathMatcher(wire::Writer& w, int field, std::string_view value) {
  w.Message(field, [&] { WriteStringMatcher(w, matcher::PathMatcher::kPathFieldNumber, value); });
}

void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, std::string_view value) {
  WriteMetadataMatcher(w, field, filter, path, kind, false, [&](int at) { WriteStringMatcher(w, at, value); });
}

void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, bool invert,
                          absl::FunctionRef<void(int field)> value) {
  using matcher::ListMatcher;
  using matcher::ValueMatcher;
  const auto text = [&] { value(ValueMatcher::kStringMatchFieldNumber); };
  w.Message(field, [&] {
    w.NonEmpty(MetadataPb::kFilterFieldNumber, filter);
    for (const std::string_view key : path) {
      w.Message(MetadataPb::kPathFieldNumber, [&] { w.Bytes(MetadataPb::PathSegment::kKeyFieldNumber, key); });
    }
    w.Message(MetadataPb::kValueFieldNumber, [&] {
      if (kind == MetadataValue::kText) return text();
      w.Message(ValueMatcher::kListMatchFieldNumber, [&] { w.Message(ListMatcher::kOneOfFieldNumber, text); });
    });
    if (invert) w.Bool(MetadataPb::kInvertFieldNumber, true);
  });
}

}  // namespace wavetank::pilot::authz
