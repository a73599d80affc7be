package servicebus

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Kinds of credential, as a setting names them.
const (
	// CredentialManagedIdentity is the identity of the container app, virtual
	// machine or the like. In the cloud it is better than the default chain, which
	// gives managed identity one second and then moves on (azure-sdk-for-go
	// #22477).
	CredentialManagedIdentity = "managed-identity"
	// CredentialWorkloadIdentity is a federated identity on Kubernetes.
	CredentialWorkloadIdentity = "workload-identity"
	// CredentialAzureCLI is whoever ran "az login" on this machine.
	CredentialAzureCLI = "azure-cli"
	// CredentialDefault tries environment variables, workload identity, managed
	// identity and developer tools one after the other.
	CredentialDefault = "default"
)

// NewCredential makes the credential for Config.Credential. Empty means
// CredentialManagedIdentity. clientID chooses a user-assigned identity for the
// managed and workload kinds; empty is the one that the environment gives.
func NewCredential(kind, clientID string) (azcore.TokenCredential, error) {
	credential, err := newCredential(kind, clientID)
	if err != nil {
		return nil, fmt.Errorf("servicebus: credential %q: %w", kind, err)
	}
	return credential, nil
}

func newCredential(kind, clientID string) (azcore.TokenCredential, error) {
	switch kind {
	case "", CredentialManagedIdentity:
		options := &azidentity.ManagedIdentityCredentialOptions{}
		if clientID != "" {
			options.ID = azidentity.ClientID(clientID)
		}
		return azidentity.NewManagedIdentityCredential(options)
	case CredentialWorkloadIdentity:
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientID: clientID})
	case CredentialAzureCLI:
		return azidentity.NewAzureCLICredential(nil)
	case CredentialDefault:
		return azidentity.NewDefaultAzureCredential(nil)
	default:
		return nil, fmt.Errorf("it may be %s, %s, %s or %s", CredentialManagedIdentity, CredentialWorkloadIdentity, CredentialAzureCLI, CredentialDefault)
	}
}
