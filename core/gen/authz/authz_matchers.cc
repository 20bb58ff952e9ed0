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

void WriteHeaderMatcher(wire::Writer& w, int field, std::string_view name, std::string_view value, bool as_string) {
  w.Message(field, [&] {
    w.NonEmpty(HeaderPb::kNameFieldNumber, name);
    if (value == kAnything) {
      w.Bool(HeaderPb::kPresentMatchFieldNumber, true);
    } else if (as_string) {
      WriteStringMatcher(w, HeaderPb::kStringMatchFieldNumber, value);
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

void WritePrefixMatcher(wire::Writer& w, int field, std::string_view prefix) {
  w.Message(field, [&] { w.Bytes(StringPb::kPrefixFieldNumber, prefix); });
}

bool IsListValue(std::string_view value) { return value.starts_with('[') && value.ends_with(']'); }

std::string_view WithoutListBrackets(std::string_view value) {
  const size_t first = value.find_first_not_of("[]"), last = value.find_last_not_of("[]");
  return first == value.npos ? std::string_view() : value.substr(first, last - first + 1);
}

void WriteFilterValues(wire::Writer& w, int field, std::string_view filter, std::string_view key,
                       const std::vector<std::string>& values) {
  using matcher::ListMatcher;
  using matcher::OrMatcher;
  using matcher::ValueMatcher;
  const auto write = [&](int at, std::string_view value) {
    w.Message(at, [&] {
      if (!IsListValue(value)) return WriteStringMatcher(w, ValueMatcher::kStringMatchFieldNumber, value);
      w.Message(ValueMatcher::kListMatchFieldNumber, [&] {
        w.Message(ListMatcher::kOneOfFieldNumber,
                  [&] { WriteStringMatcher(w, ValueMatcher::kStringMatchFieldNumber, WithoutListBrackets(value)); });
      });
    });
  };
  w.Message(field, [&] {
    w.NonEmpty(MetadataPb::kFilterFieldNumber, filter);
    w.Message(MetadataPb::kPathFieldNumber, [&] { w.Bytes(MetadataPb::PathSegment::kKeyFieldNumber, key); });
    if (values.size() == 1) return write(MetadataPb::kValueFieldNumber, values.front());
    w.Message(MetadataPb::kValueFieldNumber, [&] {
      w.Message(ValueMatcher::kOrMatchFieldNumber, [&] {
        for (const std::string& value : values) write(OrMatcher::kValueMatchersFieldNumber, value);
      });
    });
  });
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
    const auto list = [&] {
      w.Message(ValueMatcher::kListMatchFieldNumber, [&] { w.Message(ListMatcher::kOneOfFieldNumber, text); });
    };
    w.Message(MetadataPb::kValueFieldNumber, [&] {
      if (kind == MetadataValue::kText) return text();
      if (kind == MetadataValue::kListWith) return list();
      w.Message(ValueMatcher::kOrMatchFieldNumber, [&] {
        w.Message(matcher::OrMatcher::kValueMatchersFieldNumber, list);
        w.Message(matcher::OrMatcher::kValueMatchersFieldNumber, text);
      });
    });
    if (invert) w.Bool(MetadataPb::kInvertFieldNumber, true);
  });
}

void WriteClaimMatcher(wire::Writer& w, int field, const std::vector<std::string_view>& claim,
                       const std::vector<std::string>& values) {
  using matcher::ListMatcher;
  using matcher::OrMatcher;
  using matcher::ValueMatcher;
  const auto one = [&](const std::string& value) {
    return [&w, &value] { WriteStringMatcher(w, ValueMatcher::kStringMatchFieldNumber, value); };
  };
  const auto any = [&] {
    if (values.size() == 1) return one(values.front())();
    w.Message(ValueMatcher::kOrMatchFieldNumber, [&] {
      for (const std::string& value : values) w.Message(OrMatcher::kValueMatchersFieldNumber, one(value));
    });
  };
  w.Message(field, [&] {
    w.Bytes(MetadataPb::kFilterFieldNumber, kJwtFilter);
    for (const std::string_view key : claim) {
      w.Message(MetadataPb::kPathFieldNumber, [&] { w.Bytes(MetadataPb::PathSegment::kKeyFieldNumber, key); });
    }
    w.Message(MetadataPb::kValueFieldNumber, [&] {
      w.Message(ValueMatcher::kOrMatchFieldNumber, [&] {
        w.Message(OrMatcher::kValueMatchersFieldNumber, [&] {
          w.Message(ValueMatcher::kListMatchFieldNumber, [&] { w.Message(ListMatcher::kOneOfFieldNumber, any); });
        });
        w.Message(OrMatcher::kValueMatchersFieldNumber, any);
      });
    });
  });
}

TokenPrincipal ParseTokenPrincipal(std::string_view value) {
  using Kind = TokenPattern::Kind;
  // An issuer may be a URL.
  const size_t slash = value.rfind('/');
  const bool both = slash != value.npos;
  const std::string_view issuer = both ? value.substr(0, slash) : value, subject = both ? value.substr(slash + 1) : "";
  if (value == kAnything) return {{Kind::kAny, {}}, {Kind::kAny, {}}};
  if (value.starts_with('*')) {
    if (!both) return {{Kind::kAny, {}}, {Kind::kSuffix, value.substr(1)}};
    return {issuer == kAnything ? TokenPattern{Kind::kAny, {}} : TokenPattern{Kind::kSuffix, issuer.substr(1)},
            {Kind::kExact, subject}};
  }
  if (value.ends_with('*')) {
    if (!both) return {{Kind::kPrefix, value.substr(0, value.size() - 1)}, {Kind::kAny, {}}};
    return {{Kind::kExact, issuer},
            subject == kAnything ? TokenPattern{Kind::kAny, {}}
                                 : TokenPattern{Kind::kPrefix, subject.substr(0, subject.size() - 1)}};
  }
  return {{Kind::kExact, issuer}, {Kind::kExact, subject}};
}

void WriteTokenMatcher(wire::Writer& w, int field, std::string_view claim, const TokenPattern& pattern) {
  using Kind = TokenPattern::Kind;
  WriteMetadataMatcher(w, field, kJwtFilter, {kJwtPayload, claim}, MetadataValue::kText, false, [&](int at) {
    w.Message(at, [&] {
      if (pattern.kind == Kind::kAny) return WriteRegex(w, {".+"});
      w.Bytes(pattern.kind == Kind::kExact    ? StringPb::kExactFieldNumber
              : pattern.kind == Kind::kPrefix ? StringPb::kPrefixFieldNumber
                                              : StringPb::kSuffixFieldNumber,
              pattern.text);
    });
  });
}

}  // namespace wavetank::pilot::authz
