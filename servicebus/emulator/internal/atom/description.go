package atom

import "encoding/xml"

// Descriptions of entities. The elements stand in the order in which the
// service has them; a client of .NET's kind depends on it.

// QueueDescription describes a queue.
type QueueDescription struct {
	XMLName                    xml.Name     `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect QueueDescription"`
	LockDuration               string       `xml:"LockDuration"`
	MaxSizeInMegabytes         int64        `xml:"MaxSizeInMegabytes"`
	RequiresDuplicateDetection bool         `xml:"RequiresDuplicateDetection"`
	RequiresSession            bool         `xml:"RequiresSession"`
	DefaultMessageTimeToLive   string       `xml:"DefaultMessageTimeToLive"`
	DeadLetteringOnExpiration  bool         `xml:"DeadLetteringOnMessageExpiration"`
	DuplicateWindow            string       `xml:"DuplicateDetectionHistoryTimeWindow"`
	MaxDeliveryCount           int          `xml:"MaxDeliveryCount"`
	EnableBatchedOperations    bool         `xml:"EnableBatchedOperations"`
	SizeInBytes                int64        `xml:"SizeInBytes"`
	MessageCount               int64        `xml:"MessageCount"`
	IsAnonymousAccessible      bool         `xml:"IsAnonymousAccessible"`
	Status                     string       `xml:"Status"`
	CreatedAt                  string       `xml:"CreatedAt"`
	UpdatedAt                  string       `xml:"UpdatedAt"`
	AccessedAt                 string       `xml:"AccessedAt"`
	SupportOrdering            bool         `xml:"SupportOrdering"`
	CountDetails               CountDetails `xml:"CountDetails"`
	AutoDeleteOnIdle           string       `xml:"AutoDeleteOnIdle"`
	EnablePartitioning         bool         `xml:"EnablePartitioning"`
	Availability               string       `xml:"EntityAvailabilityStatus"`
	EnableExpress              bool         `xml:"EnableExpress"`
	MaxMessageSizeInKilobytes  int64        `xml:"MaxMessageSizeInKilobytes"`
}

// TopicDescription describes a topic.
type TopicDescription struct {
	XMLName                    xml.Name     `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect TopicDescription"`
	DefaultMessageTimeToLive   string       `xml:"DefaultMessageTimeToLive"`
	MaxSizeInMegabytes         int64        `xml:"MaxSizeInMegabytes"`
	RequiresDuplicateDetection bool         `xml:"RequiresDuplicateDetection"`
	DuplicateWindow            string       `xml:"DuplicateDetectionHistoryTimeWindow"`
	EnableBatchedOperations    bool         `xml:"EnableBatchedOperations"`
	SizeInBytes                int64        `xml:"SizeInBytes"`
	IsAnonymousAccessible      bool         `xml:"IsAnonymousAccessible"`
	Status                     string       `xml:"Status"`
	CreatedAt                  string       `xml:"CreatedAt"`
	UpdatedAt                  string       `xml:"UpdatedAt"`
	AccessedAt                 string       `xml:"AccessedAt"`
	SupportOrdering            bool         `xml:"SupportOrdering"`
	CountDetails               CountDetails `xml:"CountDetails"`
	SubscriptionCount          int          `xml:"SubscriptionCount"`
	// The next two are there since version 2024-05 of the interface.
	SQLFilterCount            *int   `xml:"SqlFilterCount"`
	CorrelationFilterCount    *int   `xml:"CorrelationFilterCount"`
	AutoDeleteOnIdle          string `xml:"AutoDeleteOnIdle"`
	EnablePartitioning        bool   `xml:"EnablePartitioning"`
	Availability              string `xml:"EntityAvailabilityStatus"`
	EnableExpress             bool   `xml:"EnableExpress"`
	MaxMessageSizeInKilobytes int64  `xml:"MaxMessageSizeInKilobytes"`
}

// SubscriptionDescription describes a subscription.
type SubscriptionDescription struct {
	XMLName                       xml.Name     `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect SubscriptionDescription"`
	LockDuration                  string       `xml:"LockDuration"`
	RequiresSession               bool         `xml:"RequiresSession"`
	DefaultMessageTimeToLive      string       `xml:"DefaultMessageTimeToLive"`
	DeadLetteringOnExpiration     bool         `xml:"DeadLetteringOnMessageExpiration"`
	DeadLetteringOnFilterFailures bool         `xml:"DeadLetteringOnFilterEvaluationExceptions"`
	MessageCount                  int64        `xml:"MessageCount"`
	MaxDeliveryCount              int          `xml:"MaxDeliveryCount"`
	EnableBatchedOperations       bool         `xml:"EnableBatchedOperations"`
	Status                        string       `xml:"Status"`
	CreatedAt                     string       `xml:"CreatedAt"`
	UpdatedAt                     string       `xml:"UpdatedAt"`
	AccessedAt                    string       `xml:"AccessedAt"`
	CountDetails                  CountDetails `xml:"CountDetails"`
	AutoDeleteOnIdle              string       `xml:"AutoDeleteOnIdle"`
	Availability                  string       `xml:"EntityAvailabilityStatus"`
}

// CountDetails are messages by state.
type CountDetails struct {
	Namespace            string `xml:"xmlns:d2p1,attr"`
	Active               int64  `xml:"d2p1:ActiveMessageCount"`
	DeadLettered         int64  `xml:"d2p1:DeadLetterMessageCount"`
	Scheduled            int64  `xml:"d2p1:ScheduledMessageCount"`
	Transfer             int64  `xml:"d2p1:TransferMessageCount"`
	TransferDeadLettered int64  `xml:"d2p1:TransferDeadLetterMessageCount"`
}

// NewCountDetails makes the counts of an entity that forwards nothing.
func NewCountDetails(active, deadLettered, scheduled int64) CountDetails {
	return CountDetails{Namespace: countsType, Active: active, DeadLettered: deadLettered, Scheduled: scheduled}
}

// NamespaceInfo describes the namespace.
type NamespaceInfo struct {
	XMLName      xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect NamespaceInfo"`
	CreatedTime  string   `xml:"CreatedTime"`
	MessagingSKU string   `xml:"MessagingSKU"`
	// MessagingUnits are there on Premium only.
	MessagingUnits *int   `xml:"MessagingUnits"`
	ModifiedTime   string `xml:"ModifiedTime"`
	Name           string `xml:"Name"`
	NamespaceType  string `xml:"NamespaceType"`
}

// Available is the availability of an entity that works.
const Available = "Available"
