// Expressions over values alone, and what the real Envoy 1.40 made of them.
#include "core/base/cel/cel_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::cel {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

CelValue Worth(std::string_view text, const CelDialect& dialect = kEnvoyCel) {
  const absl::StatusOr<CelExpression> made = CelExpression::Make(text, dialect);
  EXPECT_TRUE(made.ok()) << text << ": " << made.status();
  int64_t budget = 1'000;
  return made.ok() ? made->Evaluate([](std::string_view) { return CelValue{}; }, &budget) : CelValue{};
}

bool Holds(std::string_view text, const CelDialect& dialect = kEnvoyCel) {
  const CelValue value = Worth(text, dialect);
  return value.As<bool>() != nullptr && *value.As<bool>();
}

TEST(CelExpressionTest, TheseHold) {
  for (const char* text : {
           R"(404 in [404, 'x'])",
           R"(size([1,2,3]) == 3)",
           R"(1 + 1 == 2)",
           R"(1.5 * 2.0 == 3.0)",
           R"(7 / 2 == 3)",
           R"(-7 / 2 == -3)",
           R"(-7 % 3 == -1)",
           R"(2u - 1u == 1u)",
           R"('a' < 'b')",
           R"(b'a' == b'a')",
           R"(true && 1 == 1)",
           R"(null == null)",
           R"({'a': 1}.a == 1)",
           R"({'a': 1}['a'] == 1)",
           R"([1,2,3][1] == 2)",
           R"(int('5') == 5)",
           R"(int(5.9) == 5)",
           R"(uint(5) == 5u)",
           R"(double(5) == 5.0)",
           R"(duration('90s') == duration('1m30s'))",
           R"('abc'.contains('b'))",
           R"('abc'.startsWith('ab') && 'abc'.endsWith('bc'))",
           R"("dq" == 'dq')",
           R"(r'\d' == '\\d')",
           R"('\x41\u0042' == 'AB')",
           R"(0x10 == 16)",
           R"(1e3 == 1000.0)",
           R"(!!true)",
           R"([1,2] == [1,2])",
           R"([1] == [1.0])",
           R"({'a':1} == {'a':1})",
           R"(duration('1h') + duration('1h') == duration('2h'))",
           R"(bytes('a') == b'a')",
           R"(dyn(1) == 1)",
           R"(1 < 1.5)",
           R"(1u < 2)",
           R"(-1 < 1u)",
           R"('1' in ['1'])",
       }) {
    EXPECT_TRUE(Holds(text)) << text;
  }
}

TEST(CelExpressionTest, TheseDoNot) {
  for (const char* text : {
           R"(1 + 1.0 == 2.0)",
           R"(7 % 0 == 0)",
           R"(1 / 0 == 1)",
           R"(9223372036854775807 + 1 > 0)",
           R"('a' + 'b' == 'ab')",
           R"(b'a' == 'a')",
           R"(1 == true)",
           R"({'a': 1}['b'] == 1)",
           R"([1,2,3][5] == 2)",
           R"(double('x') == 5.0)",
           R"(duration('x') == duration('1s'))",
           R"(request.headers)",
       }) {
    EXPECT_FALSE(Holds(text)) << text;
  }
}

TEST(CelExpressionTest, OperatorsBindAsInTheSpecification) {
  EXPECT_TRUE(Holds("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9"));
  EXPECT_TRUE(Holds("7 - 2 - 1 == 4"));
  EXPECT_TRUE(Holds("true || false && false"));
  EXPECT_TRUE(Holds("false ? true : true ? true : false"));
  EXPECT_TRUE(Holds("!false == true"));
  EXPECT_TRUE(Holds("-2 * 3 == -6"));
}

TEST(CelExpressionTest, WhatFailsIsNeitherTrueNorFalse) {
  EXPECT_TRUE(Worth("1 / 0 == 1").failed());
  EXPECT_TRUE(Worth("!(1 / 0 == 1)").failed());
  EXPECT_TRUE(Worth("nobody.knows == 1").failed());
  EXPECT_TRUE(Holds("1 / 0 == 1 || true"));
  EXPECT_FALSE(Worth("1 / 0 == 1 && false").failed());
}

TEST(CelExpressionTest, PartsOfTimesAreOfUtcUnlessAnOffsetIsNamed) {
  const std::string at = "timestamp('2024-02-29T23:30:15.250Z')";
  EXPECT_TRUE(Holds(at + ".getMonth() == 1 && " + at + ".getDate() == 29 && " + at + ".getDayOfMonth() == 28"));
  EXPECT_TRUE(Holds(at + ".getDayOfWeek() == 4 && " + at + ".getDayOfYear() == 59"));
  EXPECT_TRUE(Holds(at + ".getHours() == 23 && " + at + ".getHours('+01:00') == 0"));
  EXPECT_TRUE(Holds(at + ".getSeconds() == 15 && " + at + ".getMilliseconds() == 250"));
  EXPECT_TRUE(Worth(at + ".getHours('Nowhere/City')").failed());
}

TEST(CelExpressionTest, RefusesInTheWordsOfEnvoy) {
  const auto refusal = [](std::string_view text) {
    return std::string(CelExpression::Make(text, kEnvoyCel).status().message());
  };
  EXPECT_EQ(refusal("has(request.headers['x-a'])"),
            "ERROR: <input>:1:20: has() argument must be a field "
            "selection\n | has(request.headers['x-a'])\n | ...................^");
  EXPECT_THAT(refusal("response.code >="), HasSubstr("<input>:1:17: Syntax error: mismatched input '<EOF>' expecting"));
  EXPECT_THAT(refusal("9223372036854775808 == 1"), HasSubstr("<input>:1:1: invalid int literal"));
  EXPECT_EQ(refusal("nope(1)"), "No overload found in reference resolve step for nope");
  EXPECT_EQ(refusal("request.headers.exists(h, h == 'a')"), "Comprehension support is disabled");
  EXPECT_EQ(refusal("request.path.matches('[')"), "invalid regular expression: missing ]: [");
  EXPECT_EQ(refusal("request.path.matches('(a|b|c|d|e|f|g){50}')"), "regular expression exceeds max allowed size");
  EXPECT_EQ(refusal("a.b{x: 1} == 1"), "Invalid struct creation: missing type info for 'a.b'");
}

TEST(CelExpressionTest, KnowsWhichFieldsOfVariablesItReads) {
  const absl::StatusOr<CelExpression> made = CelExpression::Make(
      "has(request.headers.x) && request['path'] == 'a' || upstream.locality.zone == 'z'", kEnvoyCel);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->Reads(), UnorderedElementsAre("request.headers", "request.path", "upstream.locality"));
}

TEST(CelExpressionTest, MacrosOfTwoVariablesAskEachIndexOrKeyWithItsValue) {
  const auto holds = [](std::string_view text) { return Holds(text, kKubernetesCel); };
  EXPECT_TRUE(holds("[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)"));
  EXPECT_TRUE(holds("[5, 5].existsOne(i, v, i == 1 && v == 5) && !{'a': 1, 'b': 1}.existsOne(k, v, v == 1)"));
  EXPECT_TRUE(holds("[1, 2, 3].transformList(i, v, i * v) == [0, 2, 6]"));
  EXPECT_TRUE(holds("{'a': 1, 'b': 2}.transformList(k, v, v > 1, k) == ['b']"));
  EXPECT_TRUE(holds("[7, 8].transformMap(i, v, i > 0, v) == {1: 8}"));
  EXPECT_TRUE(holds("{'a': 1}.transformMap(k, v, k + string(v)) == {'a': 'a1'}"));
  EXPECT_TRUE(holds("{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}"));
  EXPECT_TRUE(Worth("[1, 1].transformMapEntry(i, v, {v: i})", kKubernetesCel).failed()) << "one key twice";
  EXPECT_TRUE(holds("[[1]].all(i, l, l.all(j, v, i == j && v == 1))"));
}

TEST(CelExpressionTest, MacrosAskEachElement) {
  const auto holds = [](std::string_view text) { return Holds(text, kKubernetesCel); };
  EXPECT_TRUE(holds("[1, 2, 3].all(x, x > 0) && ![1, 2, 3].all(x, x > 1)"));
  EXPECT_TRUE(holds("[1, 2, 3].exists(x, x == 2) && ![].exists(x, true) && [].all(x, false)"));
  EXPECT_TRUE(holds("[1, 2, 2].exists_one(x, x == 1) && ![1, 2, 2].exists_one(x, x == 2)"));
  EXPECT_TRUE(holds("[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]"));
  EXPECT_TRUE(holds("[1, 2, 3].filter(x, x != 2) == [1, 3]"));
  EXPECT_TRUE(holds("[[1], [2, 3]].all(l, l.all(x, x < 4 && size(l) < 3))"));
  EXPECT_TRUE(holds("{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])"));
  EXPECT_TRUE(holds("[1, 0].exists(x, 1 / x == 1)"));
  EXPECT_TRUE(Worth("[0, 2].exists(x, 1 / x == 1)", kKubernetesCel).failed());
}

TEST(CelExpressionTest, TheLibraryOfKubernetesHasTextsListsAndAddresses) {
  for (const char* text : {
           R"('a' + 'b' == 'ab' && [1] + [2] == [1, 2] && string(5) == '5')",
           R"('tacocat'.charAt(3) == 'o' && 'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3)",
           R"('TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacoCat'.upperAscii() == 'TACOCAT')",
           R"('hello hello'.replace('he', 'we', 1) == 'wello hello' && 'a,b,c'.split(',', 2) == ['a', 'b,c'])",
           R"('tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && ' x '.trim() == 'x')",
           R"(['a', 'b'].join('-') == 'a-b' && [3, 1].min() == 1 && [3, 1].max() == 3 && [1, 2].sum() == 3)",
           R"([1, 2, 2].isSorted() && ![2, 1].isSorted() && [1, 2, 1].lastIndexOf(1) == 2)",
           R"('abc 123'.find('[0-9]+') == '123' && '1 2 3'.findAll('[0-9]', 2) == ['1', '2'])",
           R"(isURL('https://a.b:80/p?q') && !isURL('a b') && url('https://a.b:80/p?q').getHostname() == 'a.b')",
           R"(url('https://a.b:80/p?q').getPort() == '80' && url('https://a.b/p%20x').getEscapedPath() == '/p%20x')",
           R"(isIP('10.0.0.1') && !isIP('10.0.0.300') && isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0'))",
       }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
}

TEST(CelExpressionTest, QuantitiesAddressesAndRangesAreObjectsWithFunctions) {
  for (
      const char* text : {
          R"(isQuantity('1.5Gi') && isQuantity('100m') && isQuantity('3e2') && !isQuantity('1.3Gigs') && !isQuantity(''))",
          R"(quantity('1') == quantity('1000m') && quantity('1Ki') != quantity('1k'))",
          R"(quantity('50Mi').isGreaterThan(quantity('1M')) && quantity('1.5').compareTo(quantity('1500m')) == 0)",
          R"(quantity('50k').add(20).asInteger() == 50020 && quantity('1').sub(quantity('2')).sign() == -1)",
          R"(quantity('50k').isInteger() && !quantity('50u').isInteger() && quantity('500m').asApproximateFloat() == 0.5)",
          R"(ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && ip('fe80::1').isLinkLocalUnicast())",
          R"(ip('8.8.8.8').isGlobalUnicast() && !ip('224.0.0.1').isGlobalUnicast() && ip('0.0.0.0').isUnspecified())",
          R"(cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1')))",
          R"(cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8'))",
          R"(cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8'))",
          R"(cidr('10.0.0.0/8').prefixLength() == 8 && string(ip('10.0.0.1')) == '10.0.0.1')",
      }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
  EXPECT_TRUE(Worth("quantity('50u').asInteger()", kKubernetesCel).failed());
  EXPECT_TRUE(Worth("quantity('30000000000E').add(quantity('30000000000E'))", kKubernetesCel).failed())
      << "larger than can be told";
  EXPECT_TRUE(Worth("ip('10.0.0.300').family()", kKubernetesCel).failed());
  EXPECT_TRUE(Worth("quantity('1').family()", kKubernetesCel).failed());
}

// cel-go: cel/cel_test.go, TestOptionalValuesEval; README of optional types.
TEST(CelExpressionTest, OptionalValuesAreThereOrNot) {
  for (const char* text : {
           R"(optional.of(1).hasValue() && optional.of(1).value() == 1 && !optional.none().hasValue())",
           R"({'a': 1}.?a == optional.of(1) && {'a': 1}.?b == optional.none() && {'a': 1}.?b.orValue(2) == 2)",
           R"({'a': {'b': 1}}.?a.b.orValue(0) == 1 && {'a': {}}.?a.b.orValue(5) == 5 && {}.?a.b.c == optional.none())",
           R"([1, 2][?1].orValue(0) == 2 && [1, 2][?2].orValue(9) == 9 && {'a': [7]}.?a[?0] == optional.of(7))",
           R"({'a': [7]}.?a[0].orValue(0) == 7 && {'k': 'v'}[?'k'].value() == 'v')",
           R"(optional.none().or(optional.of(2)).value() == 2 && optional.of(1).or(optional.of(2)).value() == 1)",
           R"(optional.ofNonZeroValue('') == optional.none() && optional.ofNonZeroValue('a') == optional.of('a'))",
           R"(optional.ofNonZeroValue([]).orValue([1]) == [1] && optional.ofNonZeroValue(0).orValue(3) == 3)",
           R"([?optional.of(1), ?optional.none(), 2] == [1, 2] && {?'a': optional.none(), 'b': 2} == {'b': 2})",
           R"({?'a': {'x': 1}.?x} == {'a': 1})",
           R"({'a': 2}.?a.optMap(v, v * 2).orValue(0) == 4 && {}.?a.optMap(v, v * 2) == optional.none())",
           R"({'a': {'b': 1}}.?a.optFlatMap(v, v.?b) == optional.of(1))",
           R"(optional.of(1) != 1 && string(type(optional.none()) == type(optional.of(1))) == 'true')",
           R"(has({'a': {'b': 1}}.?a.b) && !has({'a': {}}.?a.b) && ip.isCanonical('10.0.0.1'))",
           R"(ip.isCanonical('2001:db8::68') && !ip.isCanonical('2001:DB8::68') && !ip.isCanonical('2001:0db8::68'))",
       }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
  const auto why = [](std::string_view text) {
    const CelValue value = Worth(text, kKubernetesCel);
    return value.failed() ? std::get<CelError>(value.is).why : "";
  };
  EXPECT_EQ(why("optional.none().value()"), "optional.none() dereference");
  EXPECT_EQ(why("ip.isCanonical('10.0.0.300')"), "IP Address \"10.0.0.300\" parse error during conversion from string");
  // Envoy's expressions, and those of istiod's, have none of it.
  EXPECT_EQ(CelExpression::Make("request.?host == optional.none()", kEnvoyCel).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(CelExpression::Make("optional.of(1).hasValue()", kEnvoyCel).ok());
}

// Kubernetes: apiserver/pkg/cel/library/format_test.go
TEST(CelExpressionTest, NamedFormatsSayWhatIsWrongWithATextOrNothing) {
  for (const std::string_view text : {
           R"(!format.dns1123Label().validate('my-label-name').hasValue())",
           R"(format.dns1123Label().validate('contains a space').hasValue())",
           R"(format.named('dns1123Label').value().validate('a.b').hasValue() && !format.named('none').hasValue())",
           R"(!format.dns1123Subdomain().validate('apiextensions.k8s.io').hasValue())",
           R"(format.dns1035Label().validate('1a').hasValue() && !format.dns1123Label().validate('1a').hasValue())",
           R"(!format.dns1123LabelPrefix().validate('my-label-prefix-').hasValue())",
           R"(!format.qualifiedName().validate('apiextensions.k8s.io/v1beta1').hasValue())",
           R"(format.qualifiedName().validate('a/b/c').hasValue() && format.qualifiedName().validate('/c').hasValue())",
           R"(!format.labelValue().validate('').hasValue() && format.labelValue().validate('-').hasValue())",
           R"(!format.uri().validate('http://example.com').hasValue() && format.uri().validate('example').hasValue())",
           R"(!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue())",
           R"(format.uuid().validate('123e4567').value() == ['does not match the UUID format'])",
           R"(!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('aGVsbG8').hasValue())",
           R"(!format.date().validate('2021-01-01').hasValue() && format.date().validate('2021-02-30').hasValue())",
           R"(!format.datetime().validate('2021-01-01T00:00:00Z').hasValue())",
           R"(format.datetime().validate('2021-01-01T24:00:00Z').value() == ['invalid datetime'])",
       }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
  const CelValue said = Worth("format.dns1123Label().validate('A').value().join(' ')", kKubernetesCel);
  ASSERT_NE(said.As<std::string>(), nullptr);
  EXPECT_EQ(*said.As<std::string>(),
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
}

// cel-go: ext/sets_test.go
TEST(CelExpressionTest, ListsAreSetsForWhoAsks) {
  for (const std::string_view text : {
           R"(sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2]) && sets.contains([], []))",
           R"(sets.equivalent([1, 1], [1]) && !sets.equivalent([1, 2], [1]) && sets.equivalent([1, 2], [2, 1u]))",
           R"(sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], []))",
       }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
}

TEST(CelExpressionTest, TextsAreQuotedWithTheirEscapes) {
  EXPECT_TRUE(Holds(R"(strings.quote('a "b" \n\\') == '"a \\"b\\" \\n\\\\"')", kKubernetesCel));
}

// Kubernetes: apiserver/pkg/cel/library/semver_test.go
TEST(CelExpressionTest, VersionsAreComparedAsSemverSays) {
  for (const std::string_view text : {
           R"(isSemver('1.2.3-beta.1+build.1') && !isSemver('v1.0') && isSemver('v01.01', true) && !isSemver('hi'))",
           R"(semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3)",
           R"(semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1')))",
           R"(semver('1.0.0-rc.2').compareTo(semver('1.0.0-rc.10')) == -1 && semver('v1.01', true) == semver('1.1.0'))",
       }) {
    EXPECT_TRUE(Holds(text, kKubernetesCel)) << text;
  }
}

// What Istio's metrics know beside access logs. istio/proxy: istio_stats.cc, getOrCreateExpression
TEST(CelExpressionTest, IstiosMetricsConvertConcatenateAndHaveMacros) {
  EXPECT_TRUE(Holds("'port ' + string(80) == 'port 80' && [1, 2].exists(x, x == 2)", kIstioMetricsCel));
  EXPECT_FALSE(CelExpression::Make("string(80)", kEnvoyCel).ok());
  EXPECT_FALSE(CelExpression::Make("'A'.lowerAscii()", kIstioMetricsCel).ok());
}

// cel-go: ext/formatting_test.go.
TEST(CelExpressionTest, TextsAreFormattedAsCelGoFormatsThem) {
  const auto text = [](std::string_view expression) {
    const CelValue value = Worth(expression, kKubernetesCel);
    return value.failed() ? "failed: " + std::get<CelError>(value.is).why : *value.As<std::string>();
  };
  EXPECT_EQ(text("'%d %d, %s %s'.format([1, 2u, 'A', true])"), "1 2, A true");
  EXPECT_EQ(text("'%%escaped %s%%'.format(['percent'])"), "%escaped percent%");
  EXPECT_EQ(text("'%.3f %f %.0f'.format([1.2345, 2.71828, 1234567.5])"), "1.234 2.718280 1,234,568");
  EXPECT_EQ(text("'%b %b %b %o %o'.format([5, -5, true, 11, -11])"), "101 -101 1 13 -13");
  EXPECT_EQ(text("'%x %X %x %x %X'.format([30, 30, -30, 'Hello', b'Hel'])"), "1e 1E -1e 48656c6c6f 48656C");
  EXPECT_EQ(text("'%.6e'.format([1052.032911275])"), "1.052033\u202f\u00d7\u202f10\u2070\u00b3");
  EXPECT_EQ(text("'%e'.format([2.71828])"), "2.718280\u202f\u00d7\u202f10\u2070\u2070");
  EXPECT_EQ(text("'%s'.format([2.71])"), "2.71");
  EXPECT_EQ(text("'%s %s'.format([[2.71, 'a', null], {'b': 'x', 'a': 5}])"),
            R"([2.710000, "a", null] {"a":5, "b":"x"})");
  EXPECT_EQ(text("'%s'.format([[duration('1h'), 'q\"']])"), R"([duration("3600s"), "q\""])");
  EXPECT_EQ(text("'%a'.format([1])"),
            "failed: could not parse formatting clause: unrecognized formatting clause \"a\"");
  EXPECT_EQ(text("'%d %d %d'.format([0, 1])"), "failed: index 2 out of range");
  EXPECT_EQ(text("'%d'.format([duration('30m2s')])"),
            "failed: error during formatting: decimal clause can only be used on integers, was given "
            "google.protobuf.Duration");
  EXPECT_EQ(text("'%x'.format([0.5])"),
            "failed: error during formatting: only integers, byte buffers, and strings can be formatted as hex, was "
            "given double");
  EXPECT_EQ(text("'%e'.format([null])"),
            "failed: error during formatting: scientific clause can only be used on doubles, was given null_type");
}

TEST(CelExpressionTest, FailuresAreToldAsCelGoTellsThem) {
  const auto why = [](std::string_view text) {
    const CelValue value = Worth(text, kKubernetesCel);
    return value.failed() ? std::get<CelError>(value.is).why : "";
  };
  EXPECT_EQ(why("1 / 0 == 1"), "division by zero");
  EXPECT_EQ(why("9223372036854775807 + 1 > 0"), "integer overflow");
  EXPECT_EQ(why("{'a': 1}.b == 1"), "no such key: b");
  EXPECT_EQ(why("[1][3] == 1"), "index out of bounds: 3");
  EXPECT_EQ(why("1 < 'a'"), "no such overload");
}

TEST(CelExpressionTest, WhatTakesTooLongFails) {
  const auto made =
      CelExpression::Make("[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, a + b > 0))", kKubernetesCel);
  ASSERT_TRUE(made.ok()) << made.status();
  int64_t budget = 100;
  EXPECT_TRUE(made->Evaluate([](std::string_view) { return CelValue{}; }, &budget).failed());
  EXPECT_LT(budget, 0);
}

}  // namespace
}  // namespace wavetank::cel
