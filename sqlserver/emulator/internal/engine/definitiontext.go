package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// The catalog shows the text of defaults, checks and filters as SQL Server
// rewrites it: brackets around names, parentheses around numbers.

// defaultText is a DEFAULT's definition.
func defaultText(x ast.ScalarExpression) string { return "(" + scalarText(x) + ")" }

// conditionText is the definition of a CHECK or a filter.
func conditionText(x ast.BooleanExpression) string { return "(" + boolText(x) + ")" }

func scalarText(x ast.ScalarExpression) string {
	switch x := x.(type) {
	case *ast.ParenthesisExpression:
		return scalarText(x.Expression)
	case *ast.IntegerLiteral:
		return "(" + x.Value + ")"
	case *ast.NumericLiteral:
		return "(" + x.Value + ")"
	case *ast.RealLiteral:
		return "(" + x.Value + ")"
	case *ast.BinaryLiteral:
		return x.Value
	case *ast.NullLiteral:
		return "NULL"
	case *ast.StringLiteral:
		quoted := "'" + strings.ReplaceAll(x.Value, "'", "''") + "'"
		if x.IsNational {
			return "N" + quoted
		}
		return quoted
	case *ast.ColumnReferenceExpression:
		return "[" + lastIdentifier(x) + "]"
	case *ast.FunctionCall:
		args := make([]string, len(x.Parameters))
		for i, p := range x.Parameters {
			args[i] = scalarText(p)
		}
		return strings.ToLower(x.FunctionName.Value) + "(" + strings.Join(args, ",") + ")"
	case *ast.ParameterlessCall:
		return strings.ToLower(parameterless(x.ParameterlessCallType)) + "()"
	case *ast.UnaryExpression:
		return "(-" + strings.Trim(scalarText(x.Expression), "()") + ")"
	case *ast.BinaryExpression:
		op := map[string]string{"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Modulo": "%"}[x.BinaryExpressionType]
		return scalarText(x.FirstExpression) + op + scalarText(x.SecondExpression)
	case *ast.NextValueForExpression:
		return "NEXT VALUE FOR [" + strings.ReplaceAll(objectText(x.SequenceName), ".", "].[") + "]"
	}
	return syntaxName(x)
}

func boolText(x ast.BooleanExpression) string {
	switch x := x.(type) {
	case *ast.BooleanParenthesisExpression:
		return boolText(x.Expression)
	case *ast.BooleanBinaryExpression:
		return boolText(x.FirstExpression) + " " + strings.ToUpper(x.BinaryExpressionType) + " " + boolText(x.SecondExpression)
	case *ast.BooleanComparisonExpression:
		return scalarText(x.FirstExpression) + operators[x.ComparisonType].op + scalarText(x.SecondExpression)
	case *ast.BooleanNotExpression:
		return "NOT (" + boolText(x.Expression) + ")"
	case *ast.BooleanIsNullExpression:
		if x.IsNot {
			return scalarText(x.Expression) + " IS NOT NULL"
		}
		return scalarText(x.Expression) + " IS NULL"
	case *ast.BooleanInExpression:
		// the server keeps IN as a chain of ORs, last value first
		parts := make([]string, len(x.Values))
		for i, v := range x.Values {
			parts[len(parts)-1-i] = scalarText(x.Expression) + "=" + scalarText(v)
		}
		text := strings.Join(parts, " OR ")
		if x.NotDefined {
			return "NOT (" + text + ")"
		}
		return text
	case *ast.BooleanTernaryExpression:
		return scalarText(x.FirstExpression) + ">=" + scalarText(x.SecondExpression) + " AND " + scalarText(x.FirstExpression) + "<=" + scalarText(x.ThirdExpression)
	case *ast.BooleanLikeExpression:
		return scalarText(x.FirstExpression) + " like " + scalarText(x.SecondExpression)
	}
	return syntaxName(x)
}
